// The svmlight/libsvm text format, read strictly:
//
//     label[,label...] [qid:int] index:value index:value ... [# comment]
//
// Input    the bytes of the file, in pieces of whole lines
// Output   rows in the order of the file, or the first error with its line and column
//
// Indices are whole numbers and increase strictly within a line; labels and values are finite decimal numbers. A line
// that holds no more than a comment is skipped, and so is a blank one unless the caller forbids it. Threads read
// consecutive pieces, cut behind line ends, so the result does not depend on their number. `SvmlightTable` gathers the
// rows in the arrays that are kept: beside them, memory holds a piece at a time.
#pragma once

#include "growing.hpp"
#include "threads.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace metrimax {

constexpr std::int64_t kHighestIndex = std::numeric_limits<std::int32_t>::max() - 1;

struct SvmlightOptions {
    bool allow_blank = true;                      // skip blank lines
    bool light_tags = false;                      // accept and ignore SVM-light's "sid:" and "cost:", and "qid:" too
    std::int64_t least = 0, most = kHighestIndex; // feature indices allowed
};

struct SvmlightError {
    std::size_t line = 0, column = 0; // both from 1; line 0: no error
    std::string message;
};

// Rows of one piece of the file.
struct SvmlightRows {
    std::vector<double> values;
    std::vector<std::int32_t> indices;
    std::vector<std::int64_t> row_sizes;
    std::vector<double> labels;
    std::vector<std::int64_t> label_counts;
    std::vector<std::int64_t> qids; // one per row as soon as one row has one, else empty
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max(), highest = -1;
    std::size_t lines = 0, bytes = 0;
    std::size_t unlabelled = 0, unlabelled_line = 0; // rows without a label, and the line of the first, from 1
    std::size_t without_qid_line = 0, qid_line = 0;  // the first line of each kind, from 1
    SvmlightError error;
};

namespace svmlight_detail {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_space(char c) { return c == ' ' || c == '\t'; }

// A bad number: where it is, and whether it is the syntax or the size.
enum class Number { good, bad, too_large };

// The general case, rounded correctly: the number from `begin` (behind the sign) to `end`, less than 10^magnitude where
// it has no leading zeros.
inline Number slow_number(const char *begin, const char *end, std::int64_t magnitude, double &out) {
    for (const char *p = begin; p < end && (*p == '0' || *p == '.'); ++p)
        magnitude -= *p == '0';
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
    const auto got = std::from_chars(begin, end, out);
    if (got.ec == std::errc::result_out_of_range) {
        if (magnitude > 0)
            return Number::too_large;
        out = 0.0; // below the smallest double
        return Number::good;
    }
    return got.ec == std::errc() && got.ptr == end ? Number::good : Number::bad;
#else
    (void)magnitude;
    const std::string copy(begin, end);
    char *stop = nullptr;
    out = std::strtod(copy.c_str(), &stop);
    if (stop != copy.c_str() + copy.size())
        return Number::bad;
    return std::isfinite(out) ? Number::good : Number::too_large;
#endif
}

// A decimal number [+-]digits[.digits][e[+-]digits] from p on; on return p is behind it. Numbers of at most 19 digits
// and a small exponent are exact by one multiplication or division (Clinger 1990), the others take the general way.
inline Number parse_number(const char *&p, const char *end, double &out) {
    static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                         1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    bool negative = false;
    if (p < end && (*p == '-' || *p == '+'))
        negative = *p++ == '-';
    const char *begin = p;
    std::uint64_t mantissa = 0;
    std::int64_t exponent = 0;
    while (p < end && is_digit(*p))
        mantissa = mantissa * 10 + static_cast<std::uint64_t>(*p++ - '0'); // may wrap: then there are too many digits
    std::int64_t digits = p - begin;
    if (p < end && *p == '.') {
        const char *point = ++p;
        while (p < end && is_digit(*p))
            mantissa = mantissa * 10 + static_cast<std::uint64_t>(*p++ - '0');
        exponent = -(p - point);
        digits += p - point;
    }
    if (digits == 0)
        return Number::bad;
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        bool minus = false;
        if (q < end && (*q == '-' || *q == '+'))
            minus = *q++ == '-';
        if (q == end || !is_digit(*q))
            return Number::bad;
        std::int64_t power = 0;
        for (; q < end && is_digit(*q); ++q)
            power = power < 1000000000 ? power * 10 + (*q - '0') : power;
        exponent += minus ? -power : power;
        p = q;
    }
    Number kind = Number::good;
    constexpr std::uint64_t kExact = std::uint64_t{1} << 53;
    if (digits <= 19 && mantissa <= kExact && exponent >= -22 && exponent <= 22) {
        const auto m = static_cast<double>(mantissa);
        out = exponent < 0 ? m / kPowers[-exponent] : m * kPowers[exponent];
    } else {
        kind = slow_number(begin, p, exponent + digits, out);
    }
    if (negative)
        out = -out;
    return kind;
}

} // namespace svmlight_detail

// One piece of the file, line after line, until its end or the first error.
class SvmlightParser {
  public:
    SvmlightParser(const char *begin, const char *end, const SvmlightOptions &options)
        : p(begin), end(end), options(options) {}

    SvmlightRows operator()() {
        rows.bytes = static_cast<std::size_t>(end - p);
        rows.values.reserve(rows.bytes / 12); // about what "12345:0.0123 " needs: few files make the vectors grow often
        rows.indices.reserve(rows.bytes / 12);
        while (p < end && rows.error.line == 0) {
            ++rows.lines;
            line = p;
            const auto *stop = static_cast<const char *>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
            const char *next = stop ? stop + 1 : end;
            eol = stop ? stop : end;
            if (eol > p && eol[-1] == '\r')
                --eol;
            read_line();
            p = next;
        }
        return std::move(rows);
    }

  private:
    bool fail(const char *at, std::string message) {
        rows.error = {rows.lines, static_cast<std::size_t>(at - line) + 1, std::move(message)};
        return false;
    }

    // The token at `at`, for a message: printable, and cut where it is long.
    std::string quoted(const char *at) const {
        std::string text;
        for (const char *q = at; q < eol && !svmlight_detail::is_space(*q); ++q) {
            if (text.size() == 24) {
                text += "...";
                break;
            }
            const auto c = static_cast<unsigned char>(*q);
            text += c >= 0x20 && c < 0x7f ? *q : '?';
        }
        return text.empty() ? "the end of the line" : "'" + text + "'";
    }

    bool at_end() const { return p == eol || *p == '#'; }

    void skip_space() {
        while (p < eol && svmlight_detail::is_space(*p))
            ++p;
    }

    bool number(double &out, const char *what) {
        using svmlight_detail::Number;
        const char *at = p;
        switch (svmlight_detail::parse_number(p, eol, out)) {
        case Number::good:
            return true;
        case Number::too_large:
            return fail(at, std::string("expected ") + what + " within the range of a double, got " + quoted(at));
        default:
            return fail(at, std::string("expected ") + what + " (a finite decimal number), got " + quoted(at));
        }
    }

    bool whole(std::int64_t &out, const char *what, std::int64_t most) {
        const char *at = p;
        bool negative = false;
        if (p < eol && *p == '-') {
            negative = true;
            ++p;
        }
        const char *first = p;
        out = 0;
        for (; p < eol && svmlight_detail::is_digit(*p); ++p) {
            const std::int64_t digit = *p - '0';
            if (out > most / 10 || (out == most / 10 && digit > most % 10))
                return fail(at, std::string("expected ") + what + " of at most " + std::to_string(most) + ", got " +
                                    quoted(at));
            out = out * 10 + digit;
        }
        if (p == first)
            return fail(at, std::string("expected ") + what + " (a whole number), got " + quoted(at));
        if (negative)
            out = -out;
        return true;
    }

    bool separated(const char *what) {
        if (at_end() || svmlight_detail::is_space(*p))
            return true;
        return fail(p, std::string("expected a blank or the end of the line after ") + what + ", got " + quoted(p));
    }

    bool tag(const char *name) {
        const std::size_t length = std::strlen(name);
        if (static_cast<std::size_t>(eol - p) < length || std::memcmp(p, name, length) != 0)
            return false;
        p += length;
        return true;
    }

    // Zero or more labels with commas between them; a first token with a colon is a feature, so there is no label.
    bool read_labels(std::int64_t &count) {
        count = 0;
        const char *q = p;
        while (q < eol && !svmlight_detail::is_space(*q) && *q != ':' && *q != '#')
            ++q;
        if (q < eol && *q == ':')
            return true;
        while (true) {
            double label = 0;
            if (!number(label, "a label"))
                return false;
            rows.labels.push_back(label);
            ++count;
            if (p == eol || *p != ',')
                return separated("the label");
            ++p;
        }
    }

    bool read_tags(bool &has_qid, std::int64_t &qid) {
        has_qid = false;
        while (true) {
            skip_space();
            const char *at = p;
            if (tag("qid:")) {
                if (has_qid)
                    return fail(at, "expected one qid in a line, got a second");
                has_qid = true;
                if (!whole(qid, "a qid", std::numeric_limits<std::int64_t>::max()) || !separated("the qid"))
                    return false;
            } else if (options.light_tags && (tag("sid:") || tag("cost:"))) {
                double ignored = 0;
                if (!number(ignored, "a number") || !separated("the number"))
                    return false;
            } else {
                return true;
            }
        }
    }

    bool read_features() {
        std::int64_t last = -1;
        while (true) {
            skip_space();
            if (at_end())
                return true;
            const char *at = p;
            if (!svmlight_detail::is_digit(*p))
                return fail(at, "expected index:value, got " + quoted(at));
            std::int64_t index = 0;
            if (!whole(index, "a feature index", options.most))
                return false;
            if (index < options.least)
                return fail(at, "expected a feature index of at least " + std::to_string(options.least) + ", got " +
                                    std::to_string(index));
            if (p == eol || *p != ':')
                return fail(p, "expected ':' after the feature index, got " + quoted(p));
            if (index <= last)
                return fail(at, "expected increasing feature indices, got " + std::to_string(index) + " after " +
                                    std::to_string(last));
            ++p;
            double value = 0;
            if (!number(value, "a value") || !separated("the value"))
                return false;
            last = index;
            rows.lowest = index < rows.lowest ? index : rows.lowest;
            rows.highest = index > rows.highest ? index : rows.highest;
            rows.indices.push_back(static_cast<std::int32_t>(index));
            rows.values.push_back(value);
        }
    }

    void read_line() {
        skip_space();
        if (p == eol && !options.allow_blank) {
            fail(p, "expected an example, got a blank line");
            return;
        }
        if (at_end())
            return;
        const std::size_t before = rows.values.size();
        std::int64_t count = 0, qid = 0;
        bool has_qid = false;
        if (!read_labels(count) || !read_tags(has_qid, qid) || !read_features())
            return;
        if (count == 0 && rows.unlabelled++ == 0)
            rows.unlabelled_line = rows.lines;
        has_qid = has_qid && !options.light_tags;
        if (has_qid && rows.qid_line == 0) {
            rows.qid_line = rows.lines;
            rows.qids.assign(rows.row_sizes.size(), 0);
        }
        if (!has_qid && rows.without_qid_line == 0)
            rows.without_qid_line = rows.lines;
        if (rows.qid_line != 0)
            rows.qids.push_back(qid);
        rows.label_counts.push_back(count);
        rows.row_sizes.push_back(static_cast<std::int64_t>(rows.values.size() - before));
    }

    const char *p, *end;
    const char *line = nullptr, *eol = nullptr;
    const SvmlightOptions &options;
    SvmlightRows rows;
};

// Where up to n_threads pieces of [text, text + size), whole lines, begin, and the end.
inline std::vector<const char *> line_borders(const char *text, std::size_t size, int n_threads) {
    constexpr std::size_t kLeastPiece = std::size_t{1} << 16; // less is read faster than a thread starts
    const std::size_t asked = n_threads > 1 ? static_cast<std::size_t>(n_threads) : 1;
    const std::size_t parts = std::max<std::size_t>(1, std::min(asked, size / kLeastPiece));
    std::vector<const char *> borders(parts + 1, text + size);
    borders[0] = text;
    for (std::size_t part = 1; part < parts; ++part) {
        const char *from = std::max(borders[part - 1], text + size / parts * part);
        const auto *stop =
            static_cast<const char *>(std::memchr(from, '\n', static_cast<std::size_t>(text + size - from)));
        borders[part] = stop ? stop + 1 : text + size;
    }
    return borders;
}

// Read [text, text + size), whole lines, with up to n_threads threads; the pieces in the order of the file.
inline std::vector<SvmlightRows> read_svmlight(const char *text, std::size_t size, const SvmlightOptions &options,
                                               int n_threads) {
    const std::vector<const char *> borders = line_borders(text, size, n_threads);
    std::vector<SvmlightRows> pieces(borders.size() - 1);
    run_parts(pieces.size(),
              [&](std::size_t part) { pieces[part] = SvmlightParser(borders[part], borders[part + 1], options)(); });
    return pieces;
}

// All rows of a file, of which a part of `text_read` out of `text_size` bytes (0: unknown) has been read.
struct SvmlightTable {
    Growing<double> values;
    Growing<std::int32_t> indices;
    Growing<std::int64_t> ends; // of the rows, behind a 0
    Growing<double> labels;
    Growing<std::int64_t> label_ends;
    Growing<std::int64_t> qids;
    std::int64_t lowest = kHighestIndex + 1, highest = -1;
    std::size_t lines = 0, text_read = 0, text_size = 0;
    std::size_t unlabelled = 0, unlabelled_line = 0; // lines from 1; 0: none
    std::size_t without_qid_line = 0, qid_line = 0;
    bool several = false; // some row has several labels

    SvmlightTable() {
        ends.fill(1, 0);
        label_ends.fill(1, 0);
    }

    // Append the rows of a piece, which has no error.
    void add(const SvmlightRows &piece) {
        text_read += piece.bytes;
        const double share = static_cast<double>(text_size) / static_cast<double>(text_read > 0 ? text_read : 1);
        if (piece.unlabelled && !unlabelled_line)
            unlabelled_line = lines + piece.unlabelled_line;
        if (piece.qid_line && !qid_line) {
            qid_line = lines + piece.qid_line;
            qids.fill(ends.size() - 1, 0);
        }
        if (piece.without_qid_line && !without_qid_line)
            without_qid_line = lines + piece.without_qid_line;
        unlabelled += piece.unlabelled;
        lowest = std::min(lowest, piece.lowest);
        highest = std::max(highest, piece.highest);
        append_ends(ends, piece.row_sizes, share);
        append_ends(label_ends, piece.label_counts, share);
        for (std::int64_t count : piece.label_counts)
            several = several || count > 1;
        values.append(piece.values, share);
        indices.append(piece.indices, share);
        labels.append(piece.labels, share);
        if (qid_line) {
            qids.append(piece.qids, share);
            qids.fill(ends.size() - 1 - qids.size(), 0); // an error for a caller that needs them
        }
        lines += piece.lines;
    }

  private:
    static void append_ends(Growing<std::int64_t> &ends, const std::vector<std::int64_t> &sizes, double share) {
        std::int64_t sum = ends.last();
        ends.make_room(sizes.size(), share);
        for (std::int64_t size : sizes)
            ends.push(sum += size);
    }
};

} // namespace metrimax
