// What verbs share: where results go, and the options that are spelled alike everywhere.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "report/table.h"
#include "riffle/plan.h"

namespace riffle::cli {

using report::Table;

// Thrown by a verb that ends with another code than 0 and has said why itself.
struct Exit {
  int code = 1;
};

// --format and --output. Results go to standard output or, whole or not at all, to the file.
struct Output {
  std::string format = "table";
  std::string file;

  void add_to(CLI::App& command, std::vector<std::string> formats = {"table", "json", "csv"});
  [[nodiscard]] bool json() const { return format == "json"; }
  [[nodiscard]] bool csv() const { return format == "csv"; }
  // Colour only where a person looks.
  [[nodiscard]] bool colour() const;
  void write(const std::string& text) const;
  // Writes a table as such, or as CSV.
  void write(const report::Table& table) const;
};

// Columns of the terminal that standard output is, within reason; 100 where it is none.
int terminal_width();

// What was typed, as a shell would take it again: "riffle plan --trace 'my model.json'".
std::string command_line();

// --trace and --cluster.
struct Inputs {
  std::string trace = "resnet50";
  std::string cluster = "flat:16,latency=50us,bandwidth=10Gbps";

  void add_to(CLI::App& command);
};

// --learning-rate and --split.
void add_training(CLI::App& command, Training& training);

// A progress line on standard error: rewritten in place on a terminal, a plain line now and then
// elsewhere. Cleared when it goes away.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(const std::string& text);

 private:
  bool terminal_;
  bool shown_ = false;
};

// The specs named by --strategy: repeatable, or `all` for every strategy with its defaults.
std::vector<std::string> expand_strategies(const std::vector<std::string>& given,
                                           const StrategyTable& table);

}  // namespace riffle::cli
