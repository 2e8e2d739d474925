#include "distributed/team.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "riffle/error.h"

namespace riffle::distributed {
namespace {

constexpr int lanes = 16;

std::uint64_t hash_of_name(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const char letter : name)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
  return hash;
}

// The lane of a team that is named by a small number; -1: none.
int lane_of(const std::string& name) {
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && number >= 0 && number < lanes ? number : -1;
}

}  // namespace

CollectiveOptions TeamCall::options(Reduction reduction) const {
  CollectiveOptions options = options_;
  options.reduction = reduction;
  options.timeout = std::max(Seconds{0}, Seconds(deadline_ - Clock::now()));
  return options;
}

Team::Team(std::shared_ptr<World> world, TeamOptions options)
    : world_(std::move(world)),
      options_(std::move(options)),
      group_([&] {
        std::vector<Rank> sorted = options_.ranks;
        std::ranges::sort(sorted);
        return Group(std::move(sorted));
      }()),
      self_(member_of(world_->engine().rank())),
      lane_(lane_of(options_.name)),
      channel_(hash_of_name(options_.name)),
      timeout_(options_.timeout),
      // Not the channel of the collectives, whose highest bit is set.
      mail_(std::make_shared<Mail>(world_->engine(), (channel_ >> 2) | (std::uint64_t{1} << 62),
                                   group_)) {
  if (self_ < 0)
    usage_error("group {}: rank {} is no member of {}", options_.name, world_->engine().rank(),
                print(group_));
}

int Team::member_of(Rank rank) const {
  const auto found = std::ranges::find(options_.ranks, rank);
  return found == options_.ranks.end() ? -1 : static_cast<int>(found - options_.ranks.begin());
}

Seconds Team::or_default(Seconds timeout) const {
  return timeout.count() > 0 ? timeout : timeout_.load();
}

World& Team::world() const {
  if (world_ == nullptr) usage_error("group {} was shut down", options_.name);
  return *world_;
}

std::uint64_t Team::start(Start call) {
  static_cast<void>(world());
  std::unique_lock order(order_);
  const std::uint64_t sequence = ++sequence_;
  auto shared = std::make_shared<Start>(std::move(call));
  if (shared->here) {
    order.unlock();
    if (queue_.run_here([&] { run(*shared, sequence); })) return sequence;
    order.lock();
  }
  shared->here = false;
  struct Job {
    World::Held held;  // goes after the call
    std::shared_ptr<Start> call;
  };
  if (!queue_.add([this, job = Job{world_->hold(), std::move(shared)}, sequence] {
        run(*job.call, sequence);
      }))
    usage_error("group {} was shut down", options_.name);
  return sequence;
}

void Team::run(Start& call, std::uint64_t sequence) {
  std::exception_ptr error;
  {
    const std::scoped_lock lock(mutex_);
    error = broken_;
  }
  if (error == nullptr) {
    try {
      CollectiveOptions options;
      options.lane = std::max(0, lane_);
      options.channel = lane_ < 0 ? channel_ | 1 : 0;
      options.background = !call.here;
      options.step = static_cast<Step>(sequence);
      TeamCall context(*world_, group_, options, after(or_default(call.timeout)));
      call.body(context);
    } catch (const CommError& comm) {
      error = explained(comm, call.name, sequence);
      const std::scoped_lock lock(mutex_);
      if (broken_ == nullptr) broken_ = error;
    } catch (...) {
      error = std::current_exception();
    }
  }
  call.body = nullptr;
  call.done(error);
}

std::exception_ptr Team::explained(const CommError& error, const std::string& name,
                                   std::uint64_t sequence) const {
  std::string text = fmt::format("riffle: {} failed", name);
  if (error.failure() == CommFailure::timed_out) text += " at the timeout of the call";
  if (sequence > 0) text += fmt::format(", sequence number {}", sequence);
  text += fmt::format(", group {} of ranks {}: {}", options_.name, print(group_), error.what());
  return std::make_exception_ptr(TeamError(error.failure(), text));
}

Done Team::explaining(Done done, const std::string& name, std::uint64_t sequence) const {
  return [this, done = std::move(done), name, sequence](std::exception_ptr error) {
    if (error != nullptr) {
      try {
        std::rethrow_exception(error);
      } catch (const CommError& comm) {
        error = explained(comm, name, sequence);
      } catch (...) {
        error = std::current_exception();
      }
    }
    done(error);
  };
}

std::shared_ptr<Message> Team::send(int to, Message::What what, Done done, Seconds timeout) {
  static_cast<void>(world());
  what.operation = "send";
  what.peer = rank_of(to);
  what.deadline = after(or_default(timeout));
  auto message = mail_->send(std::move(what), explaining(std::move(done), "send", 0));
  attend(message);
  return message;
}

std::shared_ptr<Message> Team::receive(int from, Message::What what, Done done, Seconds timeout) {
  static_cast<void>(world());
  what.operation = "recv";
  what.peer = from < 0 ? -1 : rank_of(from);
  what.deadline = after(or_default(timeout));
  auto message = mail_->receive(std::move(what), explaining(std::move(done), "recv", 0));
  attend(message);
  return message;
}

void Team::attend(const std::shared_ptr<Message>& message) {
  struct Job {
    World::Held held;  // goes after the message
    std::shared_ptr<Mail> mail;
    std::shared_ptr<Message> message;
  };
  if (!test(*message))
    world_->attendant().attend(
        [job = Job{world_->hold(), mail_, message}] { return job.mail->test(*job.message); });
}

bool Team::wait(Message& message, Seconds timeout) {
  return mail_->wait(message, after(or_default(timeout)));
}

void Team::monitored_barrier(Seconds timeout, bool name_all) {
  if (timeout.count() < 0) timeout = timeout_.load();
  const Deadline deadline = after(timeout);
  Engine& engine = world().engine();
  const std::uint64_t sequence = ++sequence_;
  const auto tag = [&](std::uint32_t round) {
    return Tag{(channel_ >> 2) | (std::uint64_t{1} << 61), static_cast<std::uint32_t>(sequence),
               round};
  };
  const CommContext context{.group = &group_, .operation = "monitored_barrier"};
  if (self_ != 0) {
    try {
      Request here = engine.send(rank_of(0), tag(0), {});
      engine.wait(here, {.deadline = deadline, .context = context});
      Request all = engine.receive(rank_of(0), tag(1), {});
      engine.wait(all, {.deadline = deadline, .context = context});
    } catch (const CommError& error) {
      std::rethrow_exception(explained(error, "monitored_barrier", sequence));
    }
    return;
  }
  if (timeout.count() == 0)
    throw TeamError(CommFailure::timed_out, "[Rank 0]: Rank 0 timed out in monitoredBarrier");
  std::string missing;
  for (int member = 1; member < size(); ++member) {
    try {
      Request there = engine.receive(rank_of(member), tag(0), {});
      engine.wait(there, {.deadline = deadline, .context = context});
    } catch (const CommError& error) {
      if (!name_all)
        throw TeamError(error.failure(),
                        fmt::format("[Rank 0]: Rank {} failed to pass monitoredBarrier in {} ms "
                                    "(group {}, sequence number {}): {}",
                                    member, static_cast<long>(timeout.count() * 1000),
                                    options_.name, sequence, error.what()));
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", member);
    }
  }
  if (!missing.empty())
    throw TeamError(
        CommFailure::timed_out,
        fmt::format("[Rank 0]: Ranks {} failed to pass monitoredBarrier in {} ms "
                    "(group {}, sequence number {})",
                    missing, static_cast<long>(timeout.count() * 1000), options_.name, sequence));
  std::vector<Request> all;
  for (int member = 1; member < size(); ++member)
    all.push_back(engine.send(rank_of(member), tag(1), {}));
  engine.wait_all(all, {.deadline = after(Seconds{10}), .context = context});
}

void Team::abort() {
  {
    const std::scoped_lock lock(mutex_);
    if (broken_ == nullptr)
      broken_ = std::make_exception_ptr(
          TeamError(CommFailure::aborted, fmt::format("group {} was aborted", options_.name)));
  }
  if (world_ == nullptr || group_.size() != world_->engine().size()) return;
  for (const Rank rank : group_)
    if (rank != world_->engine().rank()) world_->engine().mark_failed(rank, CommFailure::aborted);
}

void Team::shutdown() {
  queue_.close();
  world_ = nullptr;
}

}  // namespace riffle::distributed
