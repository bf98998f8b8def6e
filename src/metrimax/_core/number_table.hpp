// Comma-separated values of the plain kind: every line has the same number of cells, and all of them are finite decimal
// numbers but those of some columns, which are kept as text.
//
// Input    the bytes below the header, in pieces of whole lines
// Output   the numbers by rows and the cells of text; or "not plain", where quotes, gaps or names need another reader
//
// Spaces around a number do not count, nor do blank lines. Threads read consecutive pieces, as in svmlight.hpp.
#pragma once

#include "growing.hpp"
#include "svmlight.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace metrimax {

// Rows of one piece of the file.
struct NumberRows {
    std::vector<double> values;
    std::vector<std::uint8_t> text; // the cells of text, one behind the other
    std::vector<std::int64_t> text_sizes;
    std::size_t rows = 0, bytes = 0;
    bool plain = true;
};

// Read the lines of [p, end); `is_text` says of every column whether it is kept as text.
inline NumberRows read_numbers(const char *p, const char *end, const std::vector<char> &is_text) {
    using svmlight_detail::is_space;
    NumberRows out;
    out.bytes = static_cast<std::size_t>(end - p);
    out.values.reserve(out.bytes / 8);
    const std::size_t width = is_text.size();
    while (p < end) {
        const auto *stop = static_cast<const char *>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
        const char *eol = stop ? stop : end, *next = stop ? stop + 1 : end;
        if (eol > p && eol[-1] == '\r')
            --eol;
        if (p == eol) {
            p = next;
            continue;
        }
        for (std::size_t k = 0; k < width && out.plain; ++k) {
            if (is_text[k]) {
                const char *from = p;
                while (p < eol && *p != ',') {
                    const auto c = static_cast<unsigned char>(*p++);
                    out.plain = out.plain && c != '"' && c != '\r' && c != 0;
                }
                out.text.insert(out.text.end(), from, p);
                out.text_sizes.push_back(p - from);
            } else {
                double value = 0;
                while (p < eol && is_space(*p))
                    ++p;
                out.plain = svmlight_detail::parse_number(p, eol, value) == svmlight_detail::Number::good;
                while (p < eol && is_space(*p))
                    ++p;
                out.values.push_back(value);
            }
            const bool last = k + 1 == width;
            out.plain = out.plain && (last ? p == eol : p < eol && *p == ',');
            ++p;
        }
        if (!out.plain)
            return out;
        ++out.rows;
        p = next;
    }
    return out;
}

// All rows of a file of `text_size` bytes, as far as they have been read.
class NumberTable {
  public:
    NumberTable(std::vector<char> is_text, std::size_t text_size) : is_text(std::move(is_text)), text_size(text_size) {
        text_ends.fill(1, 0);
    }

    // Read a piece of whole lines; false where it is not plain, and nothing more is to be read then.
    bool add(const char *begin, std::size_t size, int n_threads) {
        const std::vector<const char *> borders = line_borders(begin, size, n_threads);
        std::vector<NumberRows> pieces(borders.size() - 1);
        run_parts(pieces.size(),
                  [&](std::size_t part) { pieces[part] = read_numbers(borders[part], borders[part + 1], is_text); });
        for (const NumberRows &piece : pieces) {
            if (!piece.plain)
                return false;
            text_read += piece.bytes;
            const double share =
                static_cast<double>(text_size) / static_cast<double>(std::max<std::size_t>(text_read, 1));
            values.append(piece.values, share);
            text.append(piece.text, share);
            text_ends.make_room(piece.text_sizes.size(), share);
            std::int64_t sum = text_ends.last();
            for (std::int64_t length : piece.text_sizes)
                text_ends.push(sum += length);
            rows += piece.rows;
        }
        return true;
    }

    std::vector<char> is_text;
    Growing<double> values;
    Growing<std::uint8_t> text;
    Growing<std::int64_t> text_ends; // behind a 0
    std::size_t rows = 0;

  private:
    std::size_t text_size, text_read = 0;
};

} // namespace metrimax
