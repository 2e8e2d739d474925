// Where a measurement takes place: the engine whose messages it times, all ranks of the job, and
// how a rank that waits learns that it waits in vain.
#pragma once

#include <functional>
#include <span>

#include "collective/control.h"
#include "riffle/engine.h"

namespace riffle::measure {

class Place {
 public:
  // `look_around` is called while nothing comes for a moment; it throws where nobody should wait
  // any longer. The engine and the control must outlive the place.
  Place(Engine& engine, const collective::Control& control, std::function<void()> look_around = {});

  [[nodiscard]] Engine& engine() const { return engine_; }
  [[nodiscard]] const collective::Control& control() const { return control_; }

  // Blocks until the message has been sent, or has come.
  void send(Rank to, Tag tag, std::span<const std::byte> bytes) const;
  void receive(Rank from, Tag tag, std::span<std::byte> bytes) const;
  // Blocks until one of the requests may be done, or for a moment, but no longer than `until`.
  // CommError when a rank of the job has failed, or when `give_up` has passed.
  void await(std::span<const Request> requests, std::span<const Rank> peers, Deadline until,
             Deadline give_up) const;
  // When a wait that begins now must have ended.
  [[nodiscard]] Deadline give_up() const { return after(control_.timeout); }
  // A barrier over all ranks.
  void meet() const;

 private:
  void finish(Request request, Rank peer) const;

  Engine& engine_;
  const collective::Control& control_;
  std::function<void()> look_around_;
};

}  // namespace riffle::measure
