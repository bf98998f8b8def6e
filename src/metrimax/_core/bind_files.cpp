// Python bindings of the readers.
#include "bindings.hpp"
#include "svmlight.hpp"

#include <nanobind/stl/tuple.h>

#include <tuple>

namespace metrimax {

namespace {

[[noreturn]] void fail(std::size_t line, std::size_t column, const std::string &message) {
    const std::string where = "line " + std::to_string(line) + ", column " + std::to_string(column) + ": ";
    throw nb::value_error((where + message).c_str());
}

// Errors of lines, the first in the order of the file, and then of the file as a whole; `before` lines come before it.
// With `several` a line may lack a label though no other has several, and with `unwanted` also a qid that others have.
void check(const std::vector<SvmlightRows> &pieces, std::size_t before, bool several, bool unwanted) {
    std::size_t rows = 0, unlabelled = 0, unlabelled_line = 0, qid_line = 0, without_qid_line = 0;
    for (const SvmlightRows &piece : pieces) {
        if (piece.error.line)
            fail(before + piece.error.line, piece.error.column, piece.error.message);
        if (piece.unlabelled && !unlabelled_line)
            unlabelled_line = before + piece.unlabelled_line;
        if (piece.qid_line && !qid_line)
            qid_line = before + piece.qid_line;
        if (piece.without_qid_line && !without_qid_line)
            without_qid_line = before + piece.without_qid_line;
        unlabelled += piece.unlabelled;
        rows += piece.row_sizes.size();
        before += piece.lines;
        for (std::int64_t count : piece.label_counts)
            several = several || count > 1;
    }
    if (unwanted)
        return;
    if (unlabelled && unlabelled < rows && !several)
        fail(unlabelled_line, 1, "expected a label: other lines have one, and no line has several");
    if (qid_line && without_qid_line)
        fail(without_qid_line, 1, "expected a qid: other lines have one");
}

template <class T, class U> Out1<T> join(std::vector<SvmlightRows> &pieces, std::vector<U> SvmlightRows::*part) {
    std::size_t size = 0;
    for (const SvmlightRows &piece : pieces)
        size += (piece.*part).size();
    Fresh<T> all = empty<T>(size);
    T *to = all.get();
    for (SvmlightRows &piece : pieces) {
        to = std::copy((piece.*part).begin(), (piece.*part).end(), to);
        std::vector<U>().swap(piece.*part); // free what has been copied
    }
    return make_array(std::move(all), size);
}

Out1<std::int64_t> starts(std::vector<SvmlightRows> &pieces, std::vector<std::int64_t> SvmlightRows::*part) {
    std::size_t size = 0;
    for (const SvmlightRows &piece : pieces)
        size += (piece.*part).size();
    Fresh<std::int64_t> all = empty<std::int64_t>(size + 1);
    std::size_t row = 0;
    std::int64_t sum = 0;
    all[row++] = 0;
    for (const SvmlightRows &piece : pieces)
        for (std::int64_t count : piece.*part)
            all[row++] = sum += count;
    return make_array(std::move(all), size + 1);
}

} // namespace

void bind_files(nb::module_ &m) {
    m.def(
        "read_svmlight",
        [](In1<std::uint8_t> text, bool allow_blank, bool light_tags, std::int64_t least, std::int64_t most,
           int n_threads, std::size_t lines_before, bool several, bool unwanted) {
            const auto *bytes = reinterpret_cast<const char *>(text.data());
            const std::size_t size = text.size();
            SvmlightOptions options;
            options.allow_blank = allow_blank;
            options.light_tags = light_tags;
            options.least = least;
            options.most = std::min(most, kHighestIndex);
            std::vector<SvmlightRows> pieces;
            {
                nb::gil_scoped_release unlocked;
                pieces = read_svmlight(bytes, size, options, n_threads);
            }
            check(pieces, lines_before, several, unwanted);
            std::int64_t lowest = kHighestIndex + 1, highest = -1;
            for (const SvmlightRows &piece : pieces) {
                lowest = std::min(lowest, piece.lowest);
                highest = std::max(highest, piece.highest);
            }
            auto indptr = starts(pieces, &SvmlightRows::row_sizes);
            auto label_starts = starts(pieces, &SvmlightRows::label_counts);
            return std::make_tuple(join<double>(pieces, &SvmlightRows::values),
                                   join<std::int32_t>(pieces, &SvmlightRows::indices), indptr,
                                   join<double>(pieces, &SvmlightRows::labels), label_starts,
                                   join<std::int64_t>(pieces, &SvmlightRows::qids), lowest, highest);
        },
        nb::arg("text").noconvert(), nb::kw_only(), nb::arg("allow_blank"), nb::arg("light_tags"), nb::arg("least"),
        nb::arg("most"), nb::arg("n_threads"), nb::arg("lines_before") = 0, nb::arg("several") = false,
        nb::arg("unwanted") = false,
        "Read svmlight text: (values, indices as written, indptr, labels, label_starts, qids, lowest and highest "
        "index). "
        "ValueError with line and column.");
}

} // namespace metrimax
