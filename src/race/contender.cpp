#include "race/contender.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "riffle/error.h"

namespace riffle::race {
namespace {

// What python/riffle/peers runs, by name.
constexpr std::array<std::string_view, 4> peers{"torch-ddp", "torch-localsgd", "decent-dp",
                                                "torchft-diloco"};

std::string name_in(std::string_view spec) {
  return std::string(spec.substr(0, spec.find(':')));
}

// The value of an option of a peer, "" where it is not given.
std::string option(std::string_view spec, std::string_view key) {
  const std::size_t colon = spec.find(':');
  if (colon == std::string_view::npos) return "";
  for (const std::string_view each : split(spec.substr(colon + 1), ','))
    if (each.starts_with(key) && each.substr(key.size()).starts_with("="))
      return std::string(each.substr(key.size() + 1));
  return "";
}

Contender peer_of(const std::string& spec, const StrategyTable& table) {
  Contender peer{.spec = spec, .peer = true, .asks_before_sending = true};
  const std::string hook = option(spec, "hook");
  if (name_in(spec) == "torch-ddp" && hook.empty())
    peer.predicted_as = table.make("ddp:algorithm=ring");
  if (name_in(spec) == "torch-ddp" && hook == "fp16")
    peer.predicted_as = table.make("ddp:algorithm=ring,wire=f16");
  return peer;
}

}  // namespace

std::string Contender::file_name() const {
  std::string name = spec;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '=' && c != '.')
      c = '_';
  return name;
}

Contender parse_contender(const std::string& spec, const StrategyTable& table) {
  const std::string name = name_in(spec);
  if (std::ranges::find(peers, name) != peers.end()) return peer_of(spec, table);
  if (name == "auto") return {.spec = spec};
  std::vector<std::string> known;
  for (const StrategyInfo& info : table.all()) known.push_back(info.name);
  known.emplace_back("auto");
  known.insert(known.end(), peers.begin(), peers.end());
  if (std::ranges::find(known, name) == known.end())
    throw UsageError(unknown_name("contender", name, known));
  const NamedStrategy strategy = table.make(spec);
  return {.spec = spec, .strategy = strategy, .predicted_as = strategy};
}

std::vector<Contender> parse_contenders(const std::vector<std::string>& specs,
                                        const StrategyTable& table) {
  std::vector<Contender> contenders;
  for (const std::string& spec : specs) {
    Contender contender = parse_contender(spec, table);
    for (const Contender& other : contenders)
      if (other.file_name() == contender.file_name())
        usage_error("{} is named twice", quote(contender.spec));
    contenders.push_back(std::move(contender));
  }
  return contenders;
}

}  // namespace riffle::race
