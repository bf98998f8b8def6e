// Python bindings of the readers.
#include "bindings.hpp"
#include "number_table.hpp"
#include "svmlight.hpp"

#include <nanobind/stl/tuple.h>

#include <tuple>

namespace metrimax {

namespace {

[[noreturn]] void fail(std::size_t line, std::size_t column, const std::string &message) {
    const std::string where = "line " + std::to_string(line) + ", column " + std::to_string(column) + ": ";
    throw nb::value_error((where + message).c_str());
}

template <class T> Out1<T> taken(Growing<T> &array) {
    const std::size_t size = array.size();
    return make_array(array.take(), size);
}

// Reads svmlight text that comes in pieces of whole lines.
class SvmlightReader {
  public:
    SvmlightReader(bool allow_blank, bool light_tags, std::int64_t least, std::int64_t most, int n_threads,
                   std::size_t lines_before, std::size_t text_size)
        : n_threads(n_threads) {
        options = {allow_blank, light_tags, least, std::min(most, kHighestIndex)};
        table.lines = lines_before;
        table.text_size = text_size;
    }

    // Read a piece, in parts of a few megabytes: what the threads have read waits there to be appended.
    void feed(In1<std::uint8_t> text) {
        const auto turn = guard.turn();
        const auto *at = reinterpret_cast<const char *>(text.data());
        const char *end = at + text.size();
        while (at < end) {
            const char *stop = end;
            SvmlightError error;
            {
                nb::gil_scoped_release unlocked;
                if (static_cast<std::size_t>(end - at) > kPart) {
                    const auto *line_end = static_cast<const char *>(
                        std::memchr(at + kPart, '\n', static_cast<std::size_t>(end - at) - kPart));
                    stop = line_end ? line_end + 1 : end;
                }
                const std::vector<SvmlightRows> pieces =
                    read_svmlight(at, static_cast<std::size_t>(stop - at), options, n_threads);
                for (const SvmlightRows &piece : pieces) {
                    if (piece.error.line) {
                        error = piece.error;
                        error.line += table.lines;
                        break;
                    }
                    table.add(piece);
                }
            }
            if (error.line)
                fail(error.line, error.column, error.message);
            at = stop;
        }
    }

    // What was read, which the reader then has no more. With `several` a line may lack a label though no other has
    // several, and with `unwanted` also a qid that others have.
    auto finish(bool several, bool unwanted) {
        const auto turn = guard.turn();
        const std::size_t rows = table.ends.size() - 1;
        if (!unwanted && table.unlabelled && table.unlabelled < rows && !several && !table.several)
            fail(table.unlabelled_line, 1, "expected a label: other lines have one, and no line has several");
        if (!unwanted && table.qid_line && table.without_qid_line)
            fail(table.without_qid_line, 1, "expected a qid: other lines have one");
        return std::make_tuple(taken(table.values), taken(table.indices), taken(table.ends), taken(table.labels),
                               taken(table.label_ends), taken(table.qids), table.lowest, table.highest,
                               table.text_read);
    }

  private:
    static constexpr std::size_t kPart = std::size_t{1} << 22;
    SvmlightOptions options;
    int n_threads;
    SvmlightTable table;
    OneAtATime guard{"the reader"};
};

// Reads a table of plain numbers that comes in pieces of whole lines.
class NumberReader {
  public:
    NumberReader(In1<std::uint8_t> is_text, int n_threads, std::size_t text_size)
        : table(std::vector<char>(is_text.data(), is_text.data() + is_text.size()), text_size), n_threads(n_threads) {}

    bool feed(In1<std::uint8_t> text) {
        const auto turn = guard.turn();
        nb::gil_scoped_release unlocked;
        plain = plain && table.add(reinterpret_cast<const char *>(text.data()), text.size(), n_threads);
        return plain;
    }

    auto finish() {
        const auto turn = guard.turn();
        require(plain, "expected a table of plain numbers, got another: read it otherwise");
        return std::make_tuple(table.rows, taken(table.values), taken(table.text), taken(table.text_ends));
    }

  private:
    NumberTable table;
    int n_threads;
    bool plain = true;
    OneAtATime guard{"the reader"};
};

} // namespace

void bind_files(nb::module_ &m) {
    nb::class_<NumberReader>(m, "NumberReader", "Reads a table of plain numbers that comes in pieces of whole lines.")
        .def(nb::init<In1<std::uint8_t>, int, std::size_t>(), nb::arg("is_text").noconvert(), nb::kw_only(),
             nb::arg("n_threads"), nb::arg("text_size") = 0)
        .def("feed", &NumberReader::feed, nb::arg("text").noconvert(),
             "Read a piece of the text; False where it is not plain, and nothing more is read then.")
        .def("finish", &NumberReader::finish,
             "(number of rows, numbers row by row, cells of text one behind the other, where these begin and end).");
    nb::class_<SvmlightReader>(m, "SvmlightReader", "Reads svmlight text that comes in pieces of whole lines.")
        .def(nb::init<bool, bool, std::int64_t, std::int64_t, int, std::size_t, std::size_t>(), nb::kw_only(),
             nb::arg("allow_blank"), nb::arg("light_tags"), nb::arg("least"), nb::arg("most"), nb::arg("n_threads"),
             nb::arg("lines_before") = 0, nb::arg("text_size") = 0)
        .def("feed", &SvmlightReader::feed, nb::arg("text").noconvert(),
             "Read a piece of the text. ValueError with line and column.")
        .def("finish", &SvmlightReader::finish, nb::kw_only(), nb::arg("several") = false, nb::arg("unwanted") = false,
             "(values, indices as written, indptr, labels, label_starts, qids, lowest and highest index, bytes read).");
}

} // namespace metrimax
