#include "engine/meeting.h"

#include <fmt/format.h>

namespace riffle::engine {

Meeting::Meeting(const NetworkEngineOptions& options)
    : options_(options),
      store_(options.store),
      place_(options.place != nullptr ? options.place : &store_),
      deadline_(after(options.join_timeout)) {}

std::string Meeting::key(const std::string& topic, Rank rank) const {
  return fmt::format("engine/{}/{}/{}", options_.job, topic, rank);
}

std::string Meeting::hear(const std::string& topic, Rank rank) {
  try {
    return place().wait(key(topic, rank), deadline_);
  } catch (const CommError& error) {
    if (error.failure() != CommFailure::timed_out) throw;
    throw CommError(CommFailure::absent, rank, "", {.operation = "join"},
                    fmt::format("job \"{}\" of {} workers, waited {}", options_.job, options_.size,
                                print(options_.join_timeout)));
  }
}

std::vector<std::string> Meeting::exchange(const std::string& topic, const std::string& own) {
  place().set(key(topic, options_.rank), own, deadline_);
  std::vector<std::string> all;
  for (Rank r = 0; r < options_.size; ++r) all.push_back(r == options_.rank ? own : hear(topic, r));
  return all;
}

std::string Meeting::follow(const std::string& topic, const std::string& word_of_rank_0) {
  if (options_.rank != 0) return hear(topic, 0);
  place().set(key(topic, 0), word_of_rank_0, deadline_);
  return word_of_rank_0;
}

void Meeting::meet() {
  exchange("ready", "yes");
}

}  // namespace riffle::engine
