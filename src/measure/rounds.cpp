#include "measure/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace riffle::measure {
namespace {

// Of two hosts there is one pair: it is measured so often all the same.
constexpr int kLeastRounds = 3;
constexpr Seconds kLeastTime{0.15};
constexpr double kRoundTrips = 12;
// A piece takes about so long; until a rate is known it is guessed.
constexpr Seconds kPieceTime{0.002};
constexpr Bandwidth kGuess{32e6};
constexpr Bytes kLeastPiece = kibibytes(4);
constexpr Bytes kLargestPiece = mebibytes(1);
// Flows have settled when they came in so many pieces on the mean, and have stopped to grow.
constexpr int kSettledPieces = 8;
constexpr double kGrowth = 1.15;
constexpr double kTotalGrowth = 1.1;
// Flows that share a link take a while to agree on their shares.
constexpr Seconds kLeastUplinkTime{0.4};

constexpr std::array<std::string_view, 2> kWays{"", ", the other way"};

Bytes piece_for(Bandwidth rate) {
  const auto bytes = static_cast<std::uint64_t>(kPieceTime.count() * rate.bytes_per_second);
  return {std::clamp(static_cast<std::int64_t>(std::bit_floor(bytes)), kLeastPiece.count,
                     kLargestPiece.count)};
}

bool have_settled(const std::vector<Carried>& flows) {
  double now = 0;
  double before = 0;
  int pieces = 0;
  bool grows = false;
  for (const Carried& flow : flows) {
    pieces += flow.pieces;
    now += flow.rate.bytes_per_second;
    before += flow.before.bytes_per_second;
    grows = grows || flow.rate.bytes_per_second > kGrowth * flow.before.bytes_per_second;
  }
  return pieces >= kSettledPieces * static_cast<int>(flows.size()) &&
         (!grows || now < kTotalGrowth * before);
}

Seconds longest_round_trip(const PairTable<Echo>& echoes) {
  Seconds longest{};
  for (int a = 0; a < echoes.size(); ++a)
    for (int b = 0; b < echoes.size(); ++b)
      if (echoes.at(a, b)) longest = std::max(longest, echoes.at(a, b)->least);
  return longest;
}

}  // namespace

Rounds::Rounds(const Place& place, const Group& hosts, const PairTable<Echo>& echoes,
               Seconds most_time, Seconds budget, Tell tell)
    : place_(place),
      hosts_(hosts),
      echoes_(echoes),
      most_time_(most_time),
      time_(std::min(std::max(kLeastTime, kRoundTrips * longest_round_trip(echoes)), most_time)),
      budget_(budget),
      tell_(std::move(tell)),
      rates_(hosts.size()) {}

std::vector<Flow> Rounds::flows_of(const Pairs& pairs, Bandwidth most) const {
  const std::vector<HostRate> known = host_rates(rates_);
  // One peer may have been a slow one; two say what the host itself can.
  const auto rate_of = [&](int host) {
    int peers = 0;
    for (int other = 0; other < rates_.size(); ++other) peers += rates_.at(host, other) ? 1 : 0;
    const Bandwidth best = known[host].best();
    return peers > 1 || (peers == 1 && rates_.size() == 2) ? best : std::max(best, kGuess);
  };
  std::vector<Flow> flows;
  for (const auto& [from, to] : pairs)
    flows.push_back({.from = hosts_.ranks()[from],
                     .to = hosts_.ranks()[to],
                     .piece = piece_for(std::min({rate_of(from), rate_of(to), most})),
                     .round_trip = echoes_.at(from, to)->least});
  return flows;
}

void Rounds::note(std::pair<int, int> pair, Bandwidth rate) {
  if (rate <= Bandwidth{}) return;
  std::optional<Bandwidth>& known = rates_.at(pair.first, pair.second);
  known = known ? std::max(*known, rate) : rate;
}

std::vector<Carried> Rounds::carry_settled(const Pairs& pairs, Bandwidth most) {
  std::vector<Carried> carried = carry(place_, flows_of(pairs, most), time_);
  while (!have_settled(carried) && time_ < most_time_) {
    time_ = std::min(2 * time_, most_time_);
    carried = carry(place_, flows_of(pairs, most), time_);
  }
  return carried;
}

void Rounds::run(int count) {
  const int n = hosts_.size();
  if (n < 2) return;
  const int all = rounds_of(n);
  const int done = std::max(std::min(count, all), kLeastRounds);
  for (int i = 0; i < done && !over_; ++i) {
    // Where not all of them take place, those that do are spread over the tournament.
    const int round = done < all ? i * all / done : i % all;
    Pairs pairs;
    for (int a = 0; a < n; ++a)
      if (const int b = opponent(a, round, n); b > a) pairs.emplace_back(a, b);
    for (const std::string_view way : kWays) {
      tell_(fmt::format("rates, round {} of {}{}", i + 1, done, way));
      const std::vector<Carried> carried = carry_settled(pairs);
      for (std::size_t p = 0; p < pairs.size(); ++p) note(pairs[p], carried[p].rate);
      for (auto& [from, to] : pairs) std::swap(from, to);
    }
    look_at_clock();
  }
}

// By the lowest rank's clock.
void Rounds::look_at_clock() {
  const bool decides = place_.engine().rank() == place_.control().ranks.ranks().front();
  std::vector<double> over{decides && Clock::now() - began_ > budget_ ? 1.0 : 0.0};
  place_.control().all_reduce(over, Reduction::sum);
  over_ = over.front() > 0;
}

UplinkLoad Rounds::load_uplink(const Levels& levels, int part, Bandwidth known) {
  Pairs pairs = pairs_across(levels, part);
  const std::vector<HostRate> rates = host_rates(rates_);
  UplinkLoad load;
  load.flows = static_cast<int>(pairs.size());
  for (const auto& [a, b] : pairs)
    load.ends.bytes_per_second += std::min(rates[a].best(), rates[b].best()).bytes_per_second;
  time_ = std::min(std::max(time_, kLeastUplinkTime), most_time_);
  for (const auto& [sum, way] : {std::pair{&load.out, kWays[0]}, {&load.in, kWays[1]}}) {
    tell_(fmt::format("uplink {} of {}{}", part, levels.size() - 1, way));
    for (const Carried& flow : carry_settled(pairs, {known.bytes_per_second / load.flows}))
      sum->bytes_per_second += flow.rate.bytes_per_second;
    for (auto& [from, to] : pairs) std::swap(from, to);
  }
  return load;
}

}  // namespace riffle::measure
