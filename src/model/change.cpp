#include "riffle/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/files.h"
#include "base/text.h"
#include "riffle/error.h"

namespace riffle {
namespace {

// Nobody's traffic any more is 0, which is no bandwidth of a link.
Bandwidth parse_load(std::string_view value, const std::string& where) {
  return value == "0" ? Bandwidth{} : parse_bandwidth(value, where);
}

void set_field(Change& change, std::string_view part, bool& timed, const std::string& what) {
  const std::size_t equals = part.find('=');
  const std::string key(part.substr(0, equals));
  const bool flag = key == "cut" || key == "repair";
  if (flag != (equals == std::string_view::npos))
    usage_error("{}: {} is {}", what, quote(part),
                flag ? "a word without a value" : "not key=value");
  const std::string_view value = flag ? std::string_view{} : part.substr(equals + 1);
  const std::string where = fmt::format("{}: {}", what, key);
  if (key == "at") {
    change.at = parse_seconds(value, where);
    timed = true;
  } else if (key == "link") {
    change.link = std::string(value);
  } else if (key == "worker") {
    const std::int64_t worker = parse_integer(value, where);
    if (worker < 0 || worker > std::numeric_limits<int>::max())
      usage_error("{}: {} is no rank", where, quote(value));
    change.worker = static_cast<int>(worker);
  } else if (key == "bandwidth") {
    change.bandwidth = parse_bandwidth(value, where);
  } else if (key == "latency") {
    change.latency = parse_seconds(value, where);
  } else if (key == "jitter") {
    change.jitter = parse_seconds(value, where);
  } else if (key == "loss") {
    change.loss = parse_percent(value, where);
    if (*change.loss < 0 || *change.loss > 1)
      usage_error("{}: {} must be from 0% to 100%", where, quote(value));
  } else if (key == "load") {
    change.load = parse_load(value, where);
  } else if (key == "slow") {
    change.slow = parse_number(value, where);
    if (*change.slow <= 0) usage_error("{}: {} must be above zero", where, quote(value));
  } else if (key == "cut") {
    change.cut = true;
  } else if (key == "repair") {
    change.repair = true;
  } else {
    const std::vector<std::string> known{"at",   "link", "worker", "bandwidth", "latency", "jitter",
                                         "loss", "load", "slow",   "cut",       "repair"};
    usage_error("{}: {}", what, unknown_name("field", key, known));
  }
}

Change parse_change(std::string_view text, std::string_view source) {
  const std::string what = fmt::format("{}: {}", source, quote(text));
  Change change;
  bool timed = false;
  for (const std::string_view part : split(text, ',')) set_field(change, trim(part), timed, what);
  if (!timed) usage_error("{}: at= is missing", what);
  if (change.link.empty() == (change.worker < 0))
    usage_error("{}: needs link=NAME or worker=RANK, one of them", what);
  const bool of_link = change.bandwidth || change.latency || change.jitter || change.loss ||
                       change.load || change.cut || change.repair;
  if (change.link.empty() ? !change.slow || of_link : change.slow.has_value() || !of_link)
    usage_error(
        "{}: a link takes bandwidth=, latency=, jitter=, loss=, load=, cut or repair; a worker "
        "takes slow=",
        what);
  if (change.cut && change.repair)
    usage_error("{}: cut and repair at one time; of two changes the later one counts", what);
  return change;
}

}  // namespace

std::vector<Change> parse_changes(std::string_view text, std::string_view what) {
  std::vector<Change> changes;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find_first_of("; \n\t\r", begin), text.size());
    const std::string_view part = trim(text.substr(begin, end - begin));
    if (!part.empty()) changes.push_back(parse_change(part, what));
    begin = end + 1;
  }
  return changes;
}

std::vector<Change> load_changes(const std::string& text_or_file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(text_or_file, ignored)) {
    if (text_or_file.find('=') == std::string::npos)
      usage_error("--events: {} is neither a file nor a change (e.g. {})", quote(text_or_file),
                  "at=2s,link=rack1,bandwidth=100Mbps");
    return parse_changes(text_or_file, "--events");
  }
  std::vector<Change> changes;
  const std::string text = read_file(text_or_file);
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view content = trim(line.substr(0, line.find('#')));
    const std::string where = fmt::format("{}: line {}", text_or_file, ++number);
    for (Change& change : parse_changes(content, where)) changes.push_back(std::move(change));
  }
  return changes;
}

std::string print(const Change& change) {
  std::string text = fmt::format("at={},", spell(change.at));
  text += change.link.empty() ? fmt::format("worker={}", change.worker) : "link=" + change.link;
  if (change.bandwidth) text += fmt::format(",bandwidth={}", spell(*change.bandwidth));
  if (change.latency) text += fmt::format(",latency={}", spell(*change.latency));
  if (change.jitter) text += fmt::format(",jitter={}", spell(*change.jitter));
  if (change.loss) text += fmt::format(",loss={}", spell_percent(*change.loss));
  if (change.load)
    text += change.load->bytes_per_second > 0 ? ",load=" + spell(*change.load) : ",load=0";
  if (change.slow) text += fmt::format(",slow={}", *change.slow);
  if (change.cut) text += ",cut";
  if (change.repair) text += ",repair";
  return text;
}

std::string name_of(const Cluster& cluster, LinkId link) {
  return link.uplink ? cluster.domains[static_cast<std::size_t>(link.index)].name
                     : fmt::format("worker{}", link.index);
}

namespace {

// A measured pair has figures of its own, whatever links lie between the two: an event would pass
// it by without a word.
void refuse_measured_pairs(const Change& change, const Cluster& cluster, LinkId link) {
  const auto is_behind = [&](Rank rank) {
    if (!link.uplink) return rank == link.index;
    const std::vector<int> around = cluster.ancestors(rank);
    return std::ranges::find(around, link.index) != around.end();
  };
  for (const PairLink& pair : cluster.pairs)
    if (is_behind(pair.from) != is_behind(pair.to))
      usage_error(
          "event {}: the way from worker {} to worker {} was measured by itself, so a change of "
          "{} would not reach it; take \"pairs\" out of the cluster's file",
          print(change), pair.from, pair.to, name_of(cluster, link));
}

}  // namespace

std::vector<LinkId> links_of(const Change& change, const Cluster& cluster) {
  if (change.worker >= cluster.size())
    usage_error("event {}: worker {} is not in 0..{}", print(change), change.worker,
                cluster.size() - 1);
  if (change.link.empty()) return {};
  if (cluster.fit) usage_error("event {}: a fit has no links", print(change));
  const bool many = change.link.ends_with('*');
  const std::string_view begin = std::string_view(change.link).substr(0, change.link.size() - 1);
  std::vector<LinkId> found;
  std::vector<std::string> known;
  const auto look_at = [&](LinkId link) {
    known.push_back(name_of(cluster, link));
    if (many ? known.back().starts_with(begin) : known.back() == change.link) found.push_back(link);
  };
  for (int domain = 1; domain < static_cast<int>(cluster.domains.size()); ++domain)
    look_at({.uplink = true, .index = domain});
  for (int rank = 0; rank < cluster.size(); ++rank) look_at({.uplink = false, .index = rank});
  if (found.empty()) {
    known.resize(cluster.domains.size());  // of the workers the first and the last are enough
    usage_error("event {}: {}{}", print(change), unknown_name("link", change.link, known),
                cluster.size() > 1 ? fmt::format(" to worker{}", cluster.size() - 1) : "");
  }
  for (const LinkId link : found) refuse_measured_pairs(change, cluster, link);
  return found;
}

}  // namespace riffle
