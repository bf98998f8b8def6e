// Risks made of risks: the mean over groups of examples, and sums. Plain C++17, no Python.
//
// Input    risks, which must outlive what is made of them
// Output   a risk
#pragma once

#include "risk.hpp"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace metrimax {

// The mean of the risks of groups of a sample. The examples in order[start], order[start + 1], ... are a group's own;
// those of no group have no slope.
class MeanOfGroups : public Risk {
  public:
    struct Group {
        Risk *risk;
        size_t start;
    };

    MeanOfGroups(const int64_t *order, size_t n, std::vector<Group> groups)
        : order(order, order + n), groups(std::move(groups)), share(1.0 / static_cast<double>(this->groups.size())) {}

    size_t size() const override { return order.size(); }

    double plane(const double *scores, double mu, double *slope) override {
        const Values sorted = in_order(scores);
        Values slopes(order.size());
        double loss = 0;
        for (const Group &group : groups)
            loss += group.risk->plane(&sorted[group.start], mu, &slopes[group.start]);
        for (size_t i = 0; i < order.size(); ++i)
            slope[order[i]] = share * slopes[i];
        return share * loss;
    }

    Line line(const double *scores, const double *move) override {
        struct Lines {
            Values scores, move;
            std::vector<Line> lines;
        };
        const auto all = std::make_shared<Lines>(Lines{in_order(scores), in_order(move), {}});
        all->lines.reserve(groups.size());
        for (const Group &group : groups)
            all->lines.push_back(group.risk->line(&all->scores[group.start], &all->move[group.start]));
        return [all, share = share](double t) {
            double value = 0, rise = 0;
            for (const Line &line : all->lines) {
                const auto [one, its_rise] = line(t);
                value += one;
                rise += its_rise;
            }
            return std::pair(share * value, share * rise);
        };
    }

  private:
    using Values = std::vector<double>;

    Values in_order(const double *values) const {
        Values sorted(order.size());
        for (size_t i = 0; i < order.size(); ++i)
            sorted[i] = values[order[i]];
        return sorted;
    }

    std::vector<int64_t> order;
    std::vector<Group> groups;
    double share;
};

// A weighted sum of risks. A mean of cuts takes the mean of the first risk alone.
class SumOfRisks : public Risk {
  public:
    struct Part {
        Risk *risk;
        double times;
    };

    explicit SumOfRisks(std::vector<Part> parts) : parts(std::move(parts)) {}

    size_t size() const override { return parts.front().risk->size(); }

    double plane(const double *scores, double mu, double *slope) override {
        const auto [first, share] = parts.front();
        const size_t n = size();
        double loss = share * first->plane(scores, mu / share, slope);
        for (size_t i = 0; i < n; ++i)
            slope[i] *= share;
        std::vector<double> others(n);
        for (size_t k = 1; k < parts.size(); ++k) {
            const auto [risk, times] = parts[k];
            loss += times * risk->plane(scores, 0.0, others.data());
            for (size_t i = 0; i < n; ++i)
                slope[i] += times * others[i];
        }
        return loss;
    }

    Line line(const double *scores, const double *move) override {
        std::vector<std::pair<Line, double>> lines;
        for (const auto &[risk, times] : parts)
            lines.emplace_back(risk->line(scores, move), times);
        return [lines = std::move(lines)](double t) {
            double value = 0, rise = 0;
            for (const auto &[line, times] : lines) {
                const auto [one, its_rise] = line(t);
                value += times * one;
                rise += times * its_rise;
            }
            return std::pair(value, rise);
        };
    }

  private:
    std::vector<Part> parts;
};

} // namespace metrimax
