#include "verify/traffic_table.h"

#include <cmath>
#include <functional>

#include "riffle/verify.h"

namespace riffle {
namespace {

constexpr double N = 16;  // workers
constexpr double R = 4;   // racks
constexpr double K = 4;   // workers in a rack
constexpr double g = 4;   // workers in a group
constexpr double d = 3;   // delay

double ring_bytes(double n) {
  return 2 * (n - 1) / n;
}
double ring_messages(double n) {
  return 2 * (n - 1);
}

struct Formula {
  std::string text;
  std::function<double(double buckets)> value;
};
struct Entry {
  std::string strategy;
  Formula bytes;
  Formula messages;
};

Formula constant(std::string text, double value) {
  return {std::move(text), [value](double) { return value; }};
}
Formula per_bucket(std::string text, double value) {
  return {std::move(text), [value](double buckets) { return value * buckets; }};
}

std::vector<Entry> exact_entries() {
  const Formula bytes = constant("2(N-1)/N", ring_bytes(N));
  const Formula messages = per_bucket("2(N-1)*B", ring_messages(N));
  std::vector<Entry> entries;
  for (const char* name : {"bsp", "single", "wfbp", "ddp", "mg-wfbp", "dear", "asc-wfbp"})
    entries.push_back({name + std::string(":algorithm=ring"), bytes, messages});
  entries.push_back({"hierarchical",
                     constant("2(K-1)/K + 2(R-1)/(R*K)", ring_bytes(K) + ring_bytes(R) / K),
                     constant("2(K-1) + 2*log2 R + 2(R-1-log2 R)/R",
                              2 * (K - 1) + 2 * std::log2(R) + 2 * (R - 1 - std::log2(R)) / R)});
  return entries;
}

std::vector<Entry> mixing_entries() {
  const Formula group_bytes = constant("2(g-1)/g", ring_bytes(g));
  const Formula group_messages = per_bucket("2(g-1)*B", ring_messages(g));
  const double stay = N - R;
  return {
      {"sesgd:algorithm=ring", group_bytes, group_messages},
      {"sesgd:schedule=random,algorithm=ring", group_bytes, group_messages},
      {"ds-sync:algorithm=ring", group_bytes, group_messages},
      {"ds-sync:pattern=bottleneck,delay=0,algorithm=ring",
       constant("(R*2(R-1)/R + (N-R)*2(K-2)/(K-1))/N",
                (R * ring_bytes(R) + stay * ring_bytes(K - 1)) / N),
       per_bucket("(R*2(R-1) + (N-R)*2(K-2))/N*B",
                  (R * ring_messages(R) + stay * ring_messages(K - 1)) / N)},
      {"ds-sync:pattern=bottleneck,delay=3,algorithm=ring",
       constant("2(K-1)/K + 2(R-1)/R*R/N/(d+1)", ring_bytes(K) + ring_bytes(R) * R / N / (d + 1)),
       per_bucket("(2(K-1) + 2(R-1)*R/N/(d+1))*B",
                  ring_messages(K) + ring_messages(R) * R / N / (d + 1))},
      {"gossip", constant("1", 1), per_bucket("B", 1)},
  };
}

std::vector<Entry> round_entries() {
  const auto round = [](const std::string& name, double tau) {
    return Entry{name + ":algorithm=ring", constant("2(N-1)/N/tau", ring_bytes(N) / tau),
                 per_bucket("2(N-1)/tau", ring_messages(N) / tau)};
  };
  return {round("local-sgd", 8), round("dasgd", 4), round("diloco", 20)};
}

}  // namespace

std::vector<TrafficRow> traffic_rows() {
  const StrategyTable table = StrategyTable::builtin();
  const World world(parse_cluster("racks:4x4,inner=20us/10Gbps,outer=200us/1Gbps"));
  const Trace trace = example_trace();
  std::vector<TrafficRow> rows;
  for (const auto& entries : {exact_entries(), mixing_entries(), round_entries()})
    for (const Entry& entry : entries) {
      const NamedStrategy strategy = table.make(entry.strategy);
      const auto buckets =
          static_cast<double>(strategy->buckets(trace, CostModel(world.cluster), world).size());
      const Traffic sent = sent_per_step(strategy, world, trace);
      rows.push_back({entry.strategy, entry.bytes.text, entry.bytes.value(buckets),
                      sent.bytes / static_cast<double>(trace.bytes().count), entry.messages.text,
                      entry.messages.value(buckets), sent.messages});
    }
  return rows;
}

std::vector<std::string> traffic_symbols() {
  return {
      "N = 16 workers in R = 4 racks of K = 4; groups of g = 4; all-reduces are rings, "
      "hierarchical's "
      "halving-doubling across racks",
      "B: buckets of the plan (one to four, the model has four layers)",
      "d = 3: delay; tau: steps of a round, 8 for local-sgd, 4 for dasgd, 20 for diloco",
      "the last term of hierarchical's messages: runs of blocks that wrap around go in two"};
}

}  // namespace riffle
