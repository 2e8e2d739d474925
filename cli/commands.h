// One verb, one file: cmd_<verb>.cpp declares its options on a subcommand and says what to run.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace riffle::cli {

// Verbs that run a command get what stands after "--" as it was written.

void add_bench(CLI::App& app);
void add_compare(CLI::App& app);
void add_converge(CLI::App& app);
void add_explain(CLI::App& app);
void add_lab(CLI::App& app, const std::vector<std::string>& command);
void add_launch(CLI::App& app, const std::vector<std::string>& command);
void add_plan(CLI::App& app);
void add_probe(CLI::App& app);
void add_profile(CLI::App& app, const std::vector<std::string>& command);
void add_race(CLI::App& app);
void add_report(CLI::App& app);
void add_simulate(CLI::App& app);
void add_strategies(CLI::App& app);
void add_sweep(CLI::App& app);
void add_trace(CLI::App& app);
void add_verify(CLI::App& app);

}  // namespace riffle::cli
