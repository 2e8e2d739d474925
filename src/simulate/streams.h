// The streams there are: flows join and leave them, rates change, and their ends are scheduled.
#pragma once

#include <vector>

#include "simulate/event_queue.h"
#include "simulate/fair_rates.h"
#include "simulate/flows.h"
#include "simulate/paths.h"

namespace riffle::simulator {

class Streams {
 public:
  Streams(const Links& links, const Paths& paths, Flows& flows, EventQueue& queue)
      : paths_(paths), flows_(flows), queue_(queue), rates_(links, streams_) {}

  [[nodiscard]] Stream& operator[](int stream) { return streams_[stream]; }
  [[nodiscard]] const Stream& operator[](int stream) const { return streams_[stream]; }
  FairRates& rates() { return rates_; }

  // For all flows of a path that have their workers' links for themselves.
  int add_shared(int path);
  // For one flow that knows its workers' links; `to` is below zero for a fan.
  int add_single(int path, Rank from, Rank to, int copies, double now);

  // Where the stream has come to at `now`.
  void advance(int id, double now) {
    Stream& stream = streams_[id];
    if (now <= stream.last) return;
    if (stream.weight > 0) stream.served += stream.rate * (now - stream.last);
    stream.last = now;
  }
  // Adds a flow that ends when `tag` bytes are served. Its weight is to be told by weigh().
  void put(int stream, int flow, double tag);
  // Takes a flow out before its end; likewise.
  void remove(int flow);
  // So many flows more, or fewer. A stream without flows starts over; a single one is gone.
  void weigh(int stream, int flows, double now);
  // From now on faster than this is not safe.
  void limit_safe(int id, double rate) { streams_[id].safe = std::min(streams_[id].safe, rate); }

  // Whether a stream_done event is the one that counts.
  bool at_end(int stream, double now);
  // The first of the flows that end next, if they have ended: a list, out of the stream.
  int pop_ended(int stream, double now);
  // After the last of them, of this weight.
  void popped(int stream, int flows, double now);

  // Gives streams their rates, and appends those that are faster than is safe.
  void update_rates(double now, std::vector<int>& unsafe);
  // Schedules the ends that have changed.
  void schedule_ends(double now);

  // How often a stream was given another rate.
  [[nodiscard]] std::int64_t rate_changes() const { return rate_changes_; }

 private:
  int add();
  void append(Stream::Entry& entry, int flow);
  void touch(int id) {
    if (streams_[id].touched) return;
    streams_[id].touched = true;
    touched_.push_back(id);
  }
  void schedule_end(int stream, double now);

  const Paths& paths_;
  Flows& flows_;
  EventQueue& queue_;
  std::vector<Stream> streams_;
  FairRates rates_;
  std::vector<int> free_singles_;
  std::vector<int> touched_;
  std::int64_t rate_changes_ = 0;
};

}  // namespace riffle::simulator
