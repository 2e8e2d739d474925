// --report FILE: the page of charts that verbs write beside their other results, and what it says
// of a simulation.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/json.h"
#include "riffle/plan.h"

namespace riffle::cli {

struct PageFile {
  std::string file;

  void add_to(CLI::App& command);
  [[nodiscard]] bool wanted() const { return !file.empty(); }
  // Before long work: UsageError where the page could not be written in the end.
  void check() const;
  void write(const Json& document) const;
};

// {"riffle": kind, "version": 1, "command": ..., "results": []}, in the words of race.json.
Json page_document(const std::string& kind, const Trace& trace);
void add_cluster(Json& document, const Cluster& cluster);

// A result of such a document: figures, groups of a period's steps, one step's timeline.
Json page_result(const std::string& spec, const Simulation& result);
void add_pictures(Json& result, const Trace& trace, const Cluster& cluster,
                  const NamedStrategy& strategy, const Timeline& timeline);

// Workers whose timeline a page keeps, the first ones.
constexpr int kPageWorkers = 8;

}  // namespace riffle::cli
