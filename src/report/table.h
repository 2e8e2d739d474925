// Tables a person wants to read, and the same rows as CSV.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace riffle::report {

struct Table {
  struct Column {
    std::string name;
    bool numeric = true;  // numbers align right, words left
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

// Columns of a terminal that UTF-8 text takes: its code points, so that "µs" or "×" shift nothing.
std::size_t printed_width(const std::string& text);

// Columns aligned, two blanks between them, a rule under the head. `bold_head` uses terminal
// escapes.
std::string print_table(const Table& table, bool bold_head = false);

// RFC 4180: quoted where a field holds a comma, a quote or a line break.
std::string print_csv(const Table& table);

// A table of a Markdown page.
std::string print_markdown(const Table& table);

}  // namespace riffle::report
