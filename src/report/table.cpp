#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "riffle/error.h"

namespace riffle::report {
std::size_t printed_width(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

namespace {

std::string padded(const std::string& text, std::size_t to, bool right) {
  const std::string blanks(to - std::min(to, printed_width(text)), ' ');
  return right ? blanks + text : text + blanks;
}

std::string join_cells(const std::vector<std::string>& cells, const Table& table,
                       const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (c > 0) line += "  ";
    line += padded(cells[c], widths[c], table.columns[c].numeric);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace

std::string print_table(const Table& table, bool bold_head) {
  std::vector<std::size_t> widths;
  std::vector<std::string> head;
  for (const Table::Column& column : table.columns) {
    widths.push_back(printed_width(column.name));
    head.push_back(column.name);
  }
  for (const auto& row : table.rows) {
    RIFFLE_CHECK_EQ(row.size(), table.columns.size());
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], printed_width(row[c]));
  }
  std::vector<std::string> rule;
  rule.reserve(widths.size());
  for (const std::size_t w : widths) rule.emplace_back(w, '-');
  const std::string head_line = join_cells(head, table, widths);
  std::string text = bold_head ? fmt::format("\x1b[1m{}\x1b[0m\n", head_line) : head_line + "\n";
  text += join_cells(rule, table, widths) + "\n";
  for (const auto& row : table.rows) text += join_cells(row, table, widths) + "\n";
  return text;
}

std::string print_csv(const Table& table) {
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) text += ',';
      text += csv_field(cells[c]);
    }
    text += "\n";
  };
  std::vector<std::string> head;
  for (const Table::Column& column : table.columns) head.push_back(column.name);
  line(head);
  for (const auto& row : table.rows) line(row);
  return text;
}

std::string print_markdown(const Table& table) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += " " + cell + " |";
    return text + "\n";
  };
  std::vector<std::string> head;
  std::vector<std::string> rule;
  for (const Table::Column& column : table.columns) {
    head.push_back(column.name);
    rule.emplace_back(column.numeric ? "---:" : "---");
  }
  std::string text = line(head) + line(rule);
  for (const auto& row : table.rows) text += line(row);
  return text;
}

}  // namespace riffle::report
