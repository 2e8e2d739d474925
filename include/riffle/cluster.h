// A cluster: workers on the leaves of a tree of racks and sites, with the link of each to its
// parent. Given inline, as a JSON file, or measured.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "riffle/units.h"

namespace riffle {

using Rank = int;

enum class Algorithm {
  automatic,
  ring,
  halving_doubling,
  recursive_doubling,
  direct,
  two_level,
  tree
};
std::string_view name_of(Algorithm algorithm);  // "auto", "ring", "halving-doubling", ...
Algorithm parse_algorithm(std::string_view text, std::string_view what);

// A full-duplex link to a parent. A path adds half of the latency of each link it crosses, so two
// workers of one switch are exactly `latency` apart, one way.
struct Link {
  Seconds latency{};
  Bandwidth bandwidth;  // each way
  bool operator==(const Link&) const = default;
};

// A rack, a site or the root. Its uplink is shared by everything below it.
struct Domain {
  std::string name;
  int parent = -1;  // index in Cluster::domains; -1 for the root, which has no uplink
  Link uplink;
  bool operator==(const Domain&) const = default;
};

struct WorkerSpec {
  int domain = 0;
  Link link;
  double slow = 1;  // its compute times are multiplied by this
  bool operator==(const WorkerSpec&) const = default;
};

// Each worker and step: with `probability` its compute takes `factor` times as long.
struct Straggle {
  double probability = 0;
  double factor = 1;
  bool operator==(const Straggle&) const = default;
};

// What `probe` measured between two workers, one way; replaces the tree's path for that pair.
struct PairLink {
  Rank from = 0;
  Rank to = 0;
  Link link;
  bool operator==(const PairLink&) const = default;
};

// T(M) = a + b*M: a published all-reduce over all workers, one at a time.
struct LinearCost {
  Seconds a{};
  SecondsPerByte b;
  [[nodiscard]] Seconds operator()(Bytes size) const { return a + b * size; }
  bool operator==(const LinearCost&) const = default;
};

struct Cluster {
  std::vector<Domain> domains;  // the root first, parents before children; empty for a fit
  std::vector<WorkerSpec> workers;
  std::vector<PairLink> pairs;
  std::optional<LinearCost> fit;
  Algorithm algorithm = Algorithm::automatic;  // used where an exchange says auto
  SecondsPerByte gamma;                        // reduction cost per byte
  double jitter = 0;                           // deviation of compute times, relative
  Straggle straggle;
  Seconds optimizer_step{};  // replaces the trace's when above zero
  // Collectives cut long vectors so that no message has much more than this; where they have
  // phases on different links (two_level), one piece is in one while the next is in another.
  Bytes piece = kibibytes(256);

  bool operator==(const Cluster&) const = default;

  [[nodiscard]] int size() const { return static_cast<int>(workers.size()); }
  // One way, worker to worker; zero for a worker and itself.
  [[nodiscard]] Seconds latency(Rank from, Rank to) const;
  // Domain indices from the worker's own up to the root; none for a fit.
  [[nodiscard]] std::vector<int> ancestors(Rank rank) const;
};

// flat:N racks:RxK sites:SxRxK fit:N, as design and docs/clusters.md spell them.
Cluster parse_cluster(std::string_view spec);
// A spec, or the path of a JSON file (anything that names an existing file or ends in .json).
Cluster load_cluster(const std::string& spec_or_file);

// The inline spelling where one exists (then parse_cluster gives an equal cluster), else a summary.
std::string print(const Cluster& cluster);
std::string to_json(const Cluster& cluster);
Cluster cluster_from_json(std::string_view text, std::string_view source);

// The same shape with another number of workers: more workers in a flat cluster or a fit, more
// racks or sites (of the same size) in a tree; UsageError where that is not whole.
Cluster resized(const Cluster& cluster, int workers);

}  // namespace riffle
