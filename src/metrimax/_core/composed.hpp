// Risks made of risks: the mean over groups of examples, and a sum of two. Plain C++17, no Python.
#pragma once

#include "bundle.hpp"

#include <cstdint>

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

// The risk `first`, and so many times the risk `second`; a mean of cuts is one of the first alone.
class SumOfRisks : public Risk {
  public:
    SumOfRisks(Risk &first, Risk &second, double times) : first(first), second(second), times(times) {}

    size_t size() const override { return first.size(); }

    double plane(const double *scores, double mu, double *slope) override {
        std::vector<double> others(size());
        const double loss = first.plane(scores, mu, slope) + times * second.plane(scores, 0.0, others.data());
        for (size_t i = 0; i < others.size(); ++i)
            slope[i] += times * others[i];
        return loss;
    }

    Line line(const double *scores, const double *move) override {
        return [own = first.line(scores, move), other = second.line(scores, move), times = times](double t) {
            const auto [value, rise] = own(t);
            const auto [others, their_rise] = other(t);
            return std::pair(value + times * others, rise + times * their_rise);
        };
    }

  private:
    Risk &first, &second;
    double times;
};

} // namespace metrimax
