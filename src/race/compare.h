// Two races, or a simulation and a race, side by side.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace riffle::race {

// What one file says of its contenders.
struct Times {
  struct Entry {
    std::string contender;
    // All options of a simulated strategy: files of simulations do not tell which were given.
    std::vector<std::pair<std::string, std::string>> options{};
    std::optional<double> seconds_per_step{};
    std::optional<double> seconds_to_target{};
    std::string note{};  // why there is neither
  };
  bool has_target = false;
  std::vector<Entry> entries;
};
// Of race.json, or of what `riffle simulate --format json` prints.
Times read_times(std::string_view text, std::string_view source);

struct Compared {
  struct Side {
    std::optional<double> seconds{};
    int rank = 0;  // among those that both have; 0: none
    std::string note{};
  };
  std::string contender;
  Side first{};
  Side second{};

  // The second over the first.
  [[nodiscard]] std::optional<double> ratio() const;
  // Places won from the first to the second, below zero: lost.
  [[nodiscard]] int moved() const;
};

struct Comparison {
  std::string what;  // the times are
  std::vector<Compared> contenders;
};
// By the time to the target where both have one, else by the time of a step. UsageError where
// no contender is in both.
Comparison compare(const Times& first, const Times& second);
std::string to_json(const Comparison& comparison);

}  // namespace riffle::race
