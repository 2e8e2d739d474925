// The inline spelling of clusters: parsed, printed back, resized.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/text.h"
#include "riffle/cluster.h"
#include "riffle/error.h"

namespace riffle {
namespace {

constexpr int kMostWorkers = 1'000'000;

// Shape numbers and links of a tree spec, outermost level first: sites:2x4x4 is {2, 4, 4}.
struct Shape {
  std::string kind;
  std::vector<int> counts;
  Link inner, outer, wan;
};

int shape_number(std::string_view text, std::string_view spec) {
  const std::int64_t value = parse_integer(text, fmt::format("cluster {}", quote(spec)));
  if (value < 1 || value > kMostWorkers)
    usage_error("cluster {}: {} must be from 1 to {}", quote(spec), quote(text), kMostWorkers);
  return static_cast<int>(value);
}

void build_tree(Cluster& cluster, const Shape& shape) {
  cluster.domains = {{"root", -1, {}}};
  const auto add_workers = [&](int domain, int count) {
    for (int i = 0; i < count; ++i) cluster.workers.push_back({domain, shape.inner, 1});
  };
  const auto add_racks = [&](int parent, int racks, int size, const std::string& prefix) {
    for (int r = 0; r < racks; ++r) {
      cluster.domains.push_back({fmt::format("{}rack{}", prefix, r), parent, shape.outer});
      add_workers(static_cast<int>(cluster.domains.size()) - 1, size);
    }
  };
  if (shape.kind == "flat") {
    add_workers(0, shape.counts[0]);
  } else if (shape.kind == "racks") {
    add_racks(0, shape.counts[0], shape.counts[1], "");
  } else {
    for (int s = 0; s < shape.counts[0]; ++s) {
      cluster.domains.push_back({fmt::format("site{}", s), 0, shape.wan});
      const int site = static_cast<int>(cluster.domains.size()) - 1;
      add_racks(site, shape.counts[1], shape.counts[2], fmt::format("site{}/", s));
    }
  }
}

Link parse_link(std::string_view text, const std::string& what) {
  const auto parts = split(text, '/');
  // A bandwidth may itself hold a slash (MB/s), so only the first one separates.
  if (parts.size() < 2) usage_error("{}: {} is not latency/bandwidth", what, quote(text));
  const std::string_view rate = text.substr(parts[0].size() + 1);
  return {parse_seconds(parts[0], what), parse_bandwidth(rate, what)};
}

void parse_slow(Cluster& cluster, std::string_view value, const std::string& what) {
  const auto parts = split(value, '*');
  if (parts.size() != 2) usage_error("{}: {} is not rank*factor", what, quote(value));
  const std::int64_t rank = parse_integer(parts[0], what);
  const double factor = parse_number(parts[1], what);
  if (rank < 0 || rank >= cluster.size())
    usage_error("{}: rank {} is not in 0..{}", what, rank, cluster.size() - 1);
  if (factor <= 0) usage_error("{}: factor {} must be above zero", what, factor);
  cluster.workers[static_cast<std::size_t>(rank)].slow = factor;
}

void parse_straggle(Cluster& cluster, std::string_view value, const std::string& what) {
  const auto parts = split(value, '*');
  if (parts.size() != 2) usage_error("{}: {} is not probability%*factor", what, quote(value));
  cluster.straggle = {parse_percent(parts[0], what), parse_number(parts[1], what)};
  if (cluster.straggle.probability > 1 || cluster.straggle.factor < 1)
    usage_error("{}: {} must be at most 100% and a factor of at least 1", what, quote(value));
}

void parse_piece(Cluster& cluster, std::string_view value, const std::string& what) {
  cluster.piece = parse_bytes(value, what);
  if (cluster.piece < Bytes{1}) usage_error("{}: {} must be above zero", what, quote(value));
}

using Setter = std::function<void(std::string_view value, const std::string& what)>;

// The options that fit every kind of cluster.
std::map<std::string, Setter, std::less<>> common_options(Cluster& cluster) {
  return {
      {"algorithm", [&](auto v, auto& w) { cluster.algorithm = parse_algorithm(v, w); }},
      {"gamma", [&](auto v, auto& w) { cluster.gamma = parse_seconds_per_byte(v, w); }},
      {"piece", [&](auto v, auto& w) { parse_piece(cluster, v, w); }},
      {"slow", [&](auto v, auto& w) { parse_slow(cluster, v, w); }},
      {"jitter", [&](auto v, auto& w) { cluster.jitter = parse_percent(v, w); }},
      {"straggle", [&](auto v, auto& w) { parse_straggle(cluster, v, w); }},
      {"optimizer_step", [&](auto v, auto& w) { cluster.optimizer_step = parse_seconds(v, w); }},
  };
}

std::map<std::string, Setter, std::less<>> link_options(Shape& shape, LinearCost& fit) {
  std::map<std::string, Setter, std::less<>> options;
  if (shape.kind == "fit") {
    options["a"] = [&](auto v, auto& w) { fit.a = parse_seconds(v, w); };
    options["b"] = [&](auto v, auto& w) { fit.b = parse_seconds_per_byte(v, w); };
  } else if (shape.kind == "flat") {
    options["latency"] = [&](auto v, auto& w) { shape.inner.latency = parse_seconds(v, w); };
    options["bandwidth"] = [&](auto v, auto& w) { shape.inner.bandwidth = parse_bandwidth(v, w); };
  } else {
    options["inner"] = [&](auto v, auto& w) { shape.inner = parse_link(v, w); };
    options["outer"] = [&](auto v, auto& w) { shape.outer = parse_link(v, w); };
    if (shape.kind == "sites")
      options["wan"] = [&](auto v, auto& w) { shape.wan = parse_link(v, w); };
  }
  return options;
}

Shape parse_shape(std::string_view head, std::string_view spec) {
  const std::size_t colon = head.find(':');
  Shape shape;
  shape.kind = std::string(head.substr(0, colon));
  const std::vector<std::string> kinds{"flat", "racks", "sites", "fit"};
  if (std::ranges::find(kinds, shape.kind) == kinds.end())
    usage_error("cluster {}: {}", quote(spec), unknown_name("kind", shape.kind, kinds));
  const std::size_t wanted = shape.kind == "racks" ? 2 : shape.kind == "sites" ? 3 : 1;
  const auto counts = colon == std::string_view::npos ? std::vector<std::string_view>{}
                                                      : split(head.substr(colon + 1), 'x');
  if (counts.size() != wanted)
    usage_error("cluster {}: {} takes {} (e.g. {})", quote(spec), shape.kind,
                wanted == 1 ? "a number of workers" : "numbers joined by x",
                wanted == 1   ? shape.kind + ":16"
                : wanted == 2 ? "racks:4x4"
                              : "sites:2x4x4");
  std::int64_t product = 1;
  for (const auto count : counts) {
    shape.counts.push_back(shape_number(count, spec));
    product *= shape.counts.back();
    if (product > kMostWorkers)
      usage_error("cluster {}: more than {} workers", quote(spec), kMostWorkers);
  }
  return shape;
}

std::string spell_link(const Link& link) {
  return fmt::format("{}/{}", spell(link.latency), spell(link.bandwidth));
}

// The spec of the tree's shape and links, without the common options; empty when irregular.
std::string spell_shape(const Cluster& cluster) {
  const Link inner = cluster.workers.front().link;
  const auto& domains = cluster.domains;
  const int top = static_cast<int>(std::ranges::count(domains, 0, &Domain::parent));
  if (domains.size() == 1)
    return fmt::format("flat:{},latency={},bandwidth={}", cluster.size(), spell(inner.latency),
                       spell(inner.bandwidth));
  const int deepest = cluster.workers.front().domain;
  const Link outer = domains[deepest].uplink;
  if (static_cast<int>(domains.size()) == top + 1)
    return fmt::format("racks:{}x{},inner={},outer={}", top, cluster.size() / top,
                       spell_link(inner), spell_link(outer));
  const int racks = static_cast<int>(domains.size()) - 1 - top;
  return fmt::format("sites:{}x{}x{},inner={},outer={},wan={}", top, racks / top,
                     cluster.size() / racks, spell_link(inner), spell_link(outer),
                     spell_link(domains[1].uplink));
}

std::string spell_common(const Cluster& cluster) {
  std::string text;
  if (cluster.algorithm != Algorithm::automatic)
    text += fmt::format(",algorithm={}", name_of(cluster.algorithm));
  if (cluster.gamma.value > 0) text += fmt::format(",gamma={}", spell(cluster.gamma));
  if (cluster.piece != Cluster{}.piece) text += fmt::format(",piece={}", spell(cluster.piece));
  for (int rank = 0; rank < cluster.size(); ++rank)
    if (cluster.workers[rank].slow != 1)
      text += fmt::format(",slow={}*{}", rank, cluster.workers[rank].slow);
  if (cluster.jitter > 0) text += fmt::format(",jitter={}", spell_percent(cluster.jitter));
  if (cluster.straggle != Straggle{})
    text += fmt::format(",straggle={}*{}", spell_percent(cluster.straggle.probability),
                        cluster.straggle.factor);
  if (cluster.optimizer_step.count() > 0)
    text += fmt::format(",optimizer_step={}", spell(cluster.optimizer_step));
  return text;
}

}  // namespace

Cluster parse_cluster(std::string_view spec) {
  const auto parts = split(spec, ',');
  Shape shape = parse_shape(parts[0], spec);
  Cluster cluster;
  LinearCost fit;
  if (shape.kind == "fit")
    cluster.workers.resize(static_cast<std::size_t>(shape.counts[0]));
  else
    build_tree(cluster, shape);

  auto needed = link_options(shape, fit);
  const auto common = common_options(cluster);
  std::vector<std::string> known;
  for (const auto& [key, setter] : needed) known.push_back(key);
  for (const auto& [key, setter] : common) known.push_back(key);
  for (const std::string_view part : std::span(parts).subspan(1)) {
    const std::size_t equals = part.find('=');
    const std::string key(part.substr(0, equals));
    if (equals == std::string_view::npos)
      usage_error("cluster {}: {} is not key=value", quote(spec), quote(part));
    const std::string what = fmt::format("cluster {}: {}", quote(spec), key);
    const std::string_view value = part.substr(equals + 1);
    if (const auto found = common.find(key); found != common.end()) {
      found->second(value, what);
    } else if (const auto link = needed.find(key); link != needed.end()) {
      link->second(value, what);
      needed.erase(link);
    } else {
      usage_error("cluster {}: {}", quote(spec), unknown_name("option", key, known));
    }
  }
  if (!needed.empty())
    usage_error("cluster {}: {}= is missing", quote(spec), needed.begin()->first);

  if (shape.kind == "fit") {
    cluster.fit = fit;
  } else {
    // The links are known only now; the tree was needed before for the check of ranks.
    for (WorkerSpec& worker : cluster.workers) worker.link = shape.inner;
    for (Domain& domain : cluster.domains)
      if (domain.parent >= 0)
        domain.uplink = shape.kind == "sites" && domain.parent == 0 ? shape.wan : shape.outer;
  }
  return cluster;
}

std::string print(const Cluster& cluster) {
  const std::string text = (cluster.fit ? fmt::format("fit:{},a={},b={}", cluster.size(),
                                                      spell(cluster.fit->a), spell(cluster.fit->b))
                                        : spell_shape(cluster)) +
                           spell_common(cluster);
  try {
    if (parse_cluster(text) == cluster) return text;
  } catch (const UsageError&) {  // NOLINT(bugprone-empty-catch): it has no inline spelling
  }
  return fmt::format("{} workers in {} racks and sites, irregular", cluster.size(),
                     cluster.domains.size() - 1);
}

Cluster resized(const Cluster& cluster, int workers) {
  if (workers < 1 || workers > kMostWorkers)
    usage_error("workers: {} must be from 1 to {}", workers, kMostWorkers);
  const std::string spec = print(cluster);
  const std::size_t comma = spec.find(',');
  const std::string_view head = std::string_view(spec).substr(0, comma);
  const std::size_t colon = head.find(':');
  if (colon == std::string_view::npos)
    usage_error("cluster: an irregular cluster cannot be resized to {} workers", workers);
  const auto counts = split(head.substr(colon + 1), 'x');
  std::string shape = std::to_string(workers);
  if (counts.size() > 1) {
    const int per_top = cluster.size() / static_cast<int>(parse_integer(counts[0], "cluster"));
    if (workers % per_top != 0)
      usage_error("workers: {} is not a whole number of {} of {} workers", workers,
                  head.substr(0, colon), per_top);
    shape = std::to_string(workers / per_top);
    for (const auto count : std::span(counts).subspan(1)) shape += fmt::format("x{}", count);
  }
  return parse_cluster(fmt::format("{}:{}{}", head.substr(0, colon), shape, spec.substr(comma)));
}

}  // namespace riffle
