#include "common.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <string_view>

#include "base/files.h"

namespace riffle::cli {
namespace {

std::string shell_quoted(const std::string& word) {
  const auto is_plain = [](unsigned char letter) {
    return std::isalnum(letter) != 0 ||
           std::string_view("_-+=:,./@%").find(static_cast<char>(letter)) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? "'\\''" : std::string(1, letter);
  return text + "'";
}

}  // namespace

void Output::add_to(CLI::App& command, std::vector<std::string> formats) {
  command.add_option("--format", format, "how results are printed")
      ->check(CLI::IsMember(std::move(formats)))
      ->capture_default_str();
  command.add_option("--output", file, "write the result to a file instead of standard output");
}

bool Output::colour() const {
  return file.empty() && ::isatty(STDOUT_FILENO) == 1;
}

void Output::write(const std::string& text) const {
  if (!file.empty())
    write_file(file, text);
  else
    std::fwrite(text.data(), 1, text.size(), stdout);
}

void Output::write(const report::Table& table) const {
  write(csv() ? report::print_csv(table) : report::print_table(table, colour()));
}

int terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return std::clamp<int>(size.ws_col, 60, 200);
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string word;
  std::getline(file, word, '\0');  // the program's own path is nobody else's
  std::string line = "riffle";
  while (std::getline(file, word, '\0')) line += " " + shell_quoted(word);
  return line;
}

void Inputs::add_to(CLI::App& command) {
  command
      .add_option("--trace", trace, "a model: built-in name, or a trace file of any known format")
      ->capture_default_str();
  command.add_option("--cluster", cluster, "a cluster: flat:, racks:, sites:, fit: or a JSON file")
      ->capture_default_str();
}

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (terminal_ && shown_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::show(const std::string& text) {
  if (terminal_) fmt::print(stderr, "\r\x1b[K{}", text);
  if (!terminal_ && !shown_) fmt::print(stderr, "{}\n", text);
  shown_ = true;
  std::fflush(stderr);
}

std::vector<std::string> expand_strategies(const std::vector<std::string>& given,
                                           const StrategyTable& table) {
  std::vector<std::string> specs;
  for (const std::string& spec : given) {
    if (spec != "all") {
      specs.push_back(spec);
      continue;
    }
    for (const StrategyInfo& info : table.all()) specs.push_back(info.name);
  }
  return specs;
}

void add_training(CLI::App& command, Training& training) {
  command
      .add_option(
          "--learning-rate", training.learning_rate,
          "as of the network that `riffle converge` trains, where 0.1 suits synchronous SGD "
          "best: half of the rate that suits it best with your model is 0.05")
      ->capture_default_str();
  command
      .add_option("--split", training.split,
                  "how workers' data differ: iid, or dirichlet:A, the smaller the more")
      ->capture_default_str();
}

}  // namespace riffle::cli
