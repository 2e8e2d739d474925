// How the processes of a job on several hosts find each other: through the job's store.
#pragma once

#include <string>
#include <vector>

#include "riffle/make_engine.h"
#include "riffle/store.h"

namespace riffle::engine {

class Meeting {
 public:
  explicit Meeting(const NetworkEngineOptions& options);

  [[nodiscard]] StoreAddress address() const { return place().address(); }

  // Tells all something and returns what all have told, by rank. `topic` is another for every call.
  // CommError (absent) names the first rank that is missing at the deadline.
  std::vector<std::string> exchange(const std::string& topic, const std::string& own);
  // Rank 0's word, which the others wait for.
  std::string follow(const std::string& topic, const std::string& word_of_rank_0);
  // Returns when all have called it.
  void meet();

 private:
  [[nodiscard]] std::string key(const std::string& topic, Rank rank) const;
  std::string hear(const std::string& topic, Rank rank);

  // A store as a place.
  class AtStore final : public MeetingPlace {
   public:
    explicit AtStore(Store* store) : store_(store) {}
    void set(const std::string& key, const std::string& value, Deadline deadline) override {
      store_->set(key, value, deadline);
    }
    std::string wait(const std::string& key, Deadline deadline) override {
      return store_->wait(key, deadline);
    }
    [[nodiscard]] StoreAddress address() const override { return store_->address(); }

   private:
    Store* store_;
  };
  [[nodiscard]] MeetingPlace& place() const { return *place_; }

  const NetworkEngineOptions& options_;
  AtStore store_;
  MeetingPlace* place_;
  Deadline deadline_;
};

}  // namespace riffle::engine
