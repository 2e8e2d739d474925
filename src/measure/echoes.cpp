#include "measure/echoes.h"

#include <algorithm>

#include "base/median.h"

namespace riffle::measure {
namespace {

constexpr Tag kEcho{.channel = 0x6563686f};  // "echo"
// What the one who measures says: bounce this, or that it was the last.
using Word = std::uint64_t;
constexpr Word kAgain = 1;
constexpr Word kEnd = 0;

// What disturbs a host disturbs all its messages for a while, so pairs meet several times.
constexpr int kMeetings = 2;
constexpr int kMost = 16;
constexpr int kLeast = 3;  // where they take long
constexpr Seconds kLong{0.02};

// `allowed` is for the whole meeting; one trip is timed whatever it takes.
void bounce(const Place& place, Rank peer, Seconds allowed, std::vector<Seconds>& times) {
  const auto trip = [&] {
    Word word = kAgain;
    const auto start = Clock::now();
    place.send(peer, kEcho, std::as_bytes(std::span(&word, 1)));
    place.receive(peer, kEcho, std::as_writable_bytes(std::span(&word, 1)));
    return Seconds(Clock::now() - start);
  };
  (void)trip();  // the peer may be busy with another
  const auto begin = Clock::now();
  const auto goes_on = [&](int trips) {
    const Seconds passed = Clock::now() - begin;
    return trips < kMost && (trips == 0 || passed + times.back() < allowed) &&
           (trips < kLeast || passed < kLong);
  };
  for (int trips = 0; goes_on(trips); ++trips) times.push_back(trip());
  place.send(peer, kEcho, std::as_bytes(std::span(&kEnd, 1)));
}

void answer(const Place& place, Rank peer) {
  for (;;) {
    Word word = kEnd;
    place.receive(peer, kEcho, std::as_writable_bytes(std::span(&word, 1)));
    if (word == kEnd) return;
    place.send(peer, kEcho, std::as_bytes(std::span(&word, 1)));
  }
}

}  // namespace

// Those who meet in round r have places that add up to r, modulo the odd number of all but the
// last; the last meets whom that would pair with itself.
int opponent(int player, int round, int n) {
  const int last = n + n % 2 - 1;
  int other = 0;
  if (player == last) {
    other = round * ((last + 1) / 2) % last;
  } else {
    other = ((round - player) % last + last) % last;
    if (other == player) other = last;
  }
  return other < n ? other : -1;
}

PairTable<Echo> time_echoes(const Place& place, const Group& among, Seconds budget) {
  const int n = among.size();
  const int self = among.index_of(place.engine().rank());
  std::vector<std::vector<Seconds>> times(static_cast<std::size_t>(n));
  const Deadline half = after(budget / kMeetings);
  for (int meeting = 0; meeting < kMeetings; ++meeting) {
    for (int round = 0; self >= 0 && round < rounds_of(n); ++round) {
      const int other = opponent(self, round, n);
      if (other > self)
        bounce(place, among.ranks()[other], budget / (kMeetings * rounds_of(n)), times[other]);
      else if (other >= 0)
        answer(place, among.ranks()[other]);
    }
    double late = Clock::now() > half ? 1 : 0;  // of anybody counts for all
    place.control().all_reduce(std::span(&late, 1), Reduction::sum);
    if (late > 0) break;
  }
  // Two numbers for each pair, from who has measured it.
  std::vector<double> told(static_cast<std::size_t>(n) * static_cast<std::size_t>(n) * 2);
  const auto index = [&](int a, int b) { return 2 * static_cast<std::size_t>(a * n + b); };
  for (int other = self + 1; self >= 0 && other < n; ++other) {
    const auto& trips = times[other];
    told[index(self, other)] = std::ranges::min(trips).count();
    told[index(self, other) + 1] = median(trips).count();
  }
  place.control().all_reduce(told, Reduction::sum);
  PairTable<Echo> echoes(n);
  for (int a = 0; a < n; ++a)
    for (int b = a + 1; b < n; ++b)
      echoes.set_both(a, b, {Seconds(told[index(a, b)]), Seconds(told[index(a, b) + 1])});
  return echoes;
}

}  // namespace riffle::measure
