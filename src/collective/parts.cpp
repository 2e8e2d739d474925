#include "collective/parts.h"

#include <algorithm>
#include <cstring>

#include "collective/notice.h"
#include "riffle/error.h"

namespace riffle::collective {
namespace {

constexpr std::uint32_t data_round = 1;

class Exchange {
 public:
  Exchange(Engine& engine, const Call& call, const Collectives::Parts& parts, const CallTags& tags,
           Deadline deadline)
      : engine_(engine),
        call_(call),
        parts_(parts),
        tags_(tags),
        deadline_(deadline),
        me_(call.group.index_of(engine.rank())),
        members_(static_cast<std::size_t>(call.group.size())),
        theirs_(members_),
        said_(members_) {
    check();
  }
  ~Exchange() {
    for (auto* requests : {&headers_, &notices_, &data_, &sends_})
      for (Request& request : *requests)
        if (!request.empty()) engine_.cancel(request);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void run() {
    copy_own();
    post();
    try {
      wait_for(headers_, true);
      wait_for(data_, false);
      wait_for(sends_, false);
    } catch (const CommError& error) {
      tell(error);
      if (!error.group().empty()) throw;
      throw_named(error.failure(), error.rank(), "");  // Engine::test does not know our call
    }
  }

 private:
  [[nodiscard]] std::size_t at(int member) const { return static_cast<std::size_t>(member); }
  [[nodiscard]] Rank rank_of(std::size_t member) const { return call_.group.ranks()[member]; }
  [[nodiscard]] bool sends(int from, int to) const {
    if (from == to) return false;
    if (call_.operation == Operation::gather) return to == call_.root;
    return call_.operation != Operation::scatter || from == call_.root;
  }
  [[nodiscard]] Tag tag(std::size_t member, std::uint32_t round) const {
    return {tags_.channel, tags_.sequence[member], round};
  }
  [[nodiscard]] Wait how() const {
    return {.deadline = deadline_,
            .context = call_.context(),
            .watch = call_.group.ranks(),
            .background = call_.background};
  }

  void check() const {
    if (parts_.out.size() != members_ || parts_.in.size() != members_)
      usage_error("{}: {} and {} parts for the {} members of {}", name_of(call_.operation),
                  parts_.out.size(), parts_.in.size(), members_, print(call_.group));
    for (int member = 0; member < call_.group.size(); ++member) {
      const bool own = member == me_;
      if ((!own && !sends(me_, member) && !parts_.out[at(member)].empty()) ||
          (!own && !sends(member, me_) && !parts_.in[at(member)].empty()))
        usage_error("{}: a part for member {}, which takes no part in it", name_of(call_.operation),
                    member);
    }
    if (parts_.out[at(me_)].size() != parts_.in[at(me_)].size())
      usage_error("{}: a part of {} bytes for oneself, where {} are expected",
                  name_of(call_.operation), parts_.out[at(me_)].size(), parts_.in[at(me_)].size());
  }

  void copy_own() {
    const auto from = parts_.out[at(me_)];
    if (!from.empty() && from.data() != parts_.in[at(me_)].data())
      std::memmove(parts_.in[at(me_)].data(), from.data(), from.size());
  }

  [[nodiscard]] CallHeader header_for(std::size_t bytes) const {
    CallHeader header = header_of(call_);
    header.count = bytes / static_cast<std::size_t>(size_of(parts_.dtype).count);
    header.dtype = static_cast<std::uint8_t>(parts_.dtype);
    return header;
  }

  void post() {
    own_.resize(members_);
    for (auto* requests : {&headers_, &notices_, &data_, &sends_})
      requests->resize(requests == &sends_ ? 2 * members_ : members_);
    for (int step = 1; step < call_.group.size(); ++step) {
      receive_from((me_ + step) % call_.group.size());
      send_to((me_ + call_.group.size() - step) % call_.group.size());
    }
  }
  void receive_from(int member) {
    const std::size_t m = at(member);
    notices_[m] = engine_.receive(rank_of(m), tag(m, notice_round),
                                  std::as_writable_bytes(std::span(&said_[m], 1)));
    if (!sends(member, me_)) return;
    headers_[m] = engine_.receive(rank_of(m), tag(m, header_round),
                                  std::as_writable_bytes(std::span(&theirs_[m], 1)));
    if (!parts_.in[m].empty())
      data_[m] = engine_.receive(rank_of(m), tag(m, data_round), parts_.in[m]);
  }
  void send_to(int member) {
    if (!sends(me_, member)) return;
    const std::size_t m = at(member);
    own_[m] = header_for(parts_.out[m].size());
    sends_[2 * m] =
        engine_.send(rank_of(m), tag(m, header_round), std::as_bytes(std::span(&own_[m], 1)));
    if (!parts_.out[m].empty())
      sends_[2 * m + 1] = engine_.send(rank_of(m), tag(m, data_round), parts_.out[m]);
  }

  // Until all of these are done, or somebody gives up.
  void wait_for(std::vector<Request>& requests, bool headers) {
    std::vector<Request> all;
    const auto open = [](const Request& request) { return !request.empty(); };
    while (std::ranges::any_of(requests, open)) {
      all = requests;
      all.insert(all.end(), notices_.begin(), notices_.end());
      engine_.await_any(all, waiting_for(requests));
      for (std::size_t m = 0; m < members_; ++m)
        if (open(notices_[m]) && engine_.test(notices_[m])) throw_what_it_says(m);
      for (std::size_t i = 0; i < requests.size(); ++i)
        if (open(requests[i]) && engine_.test(requests[i]) && headers) compare(i);
    }
  }
  // Time that is up names the member that we wait for.
  [[nodiscard]] Wait waiting_for(const std::vector<Request>& requests) {
    const auto first = std::ranges::find_if(requests, [](const Request& r) { return !r.empty(); });
    const std::size_t member =
        static_cast<std::size_t>(first - requests.begin()) * members_ / requests.size();
    watched_.assign(1, rank_of(member));
    watched_.insert(watched_.end(), call_.group.begin(), call_.group.end());
    Wait wait = how();
    wait.watch = watched_;
    return wait;
  }

  void compare(std::size_t member) {
    const CallHeader own = header_for(parts_.in[member].size());
    if (theirs_[member] == own) return;
    throw_named(CommFailure::mismatch, rank_of(member),
                fmt::format("it called {}; rank {} called {}", describe(theirs_[member]),
                            engine_.rank(), describe(own)));
  }
  void throw_what_it_says(std::size_t member) {
    const Notice& notice = said_[member];
    std::string detail{notice.text()};
    if (notice.culprit != rank_of(member) && detail.empty())
      detail = fmt::format("as rank {} says", rank_of(member));
    throw_named(static_cast<CommFailure>(notice.failure), notice.culprit, std::move(detail));
  }
  [[noreturn]] void throw_named(CommFailure failure, Rank culprit, std::string detail) {
    detail_ = std::move(detail);
    throw CommError(failure, culprit, culprit >= 0 ? engine_.host(culprit) : "", call_.context(),
                    detail_);
  }

  void tell(const CommError& error) noexcept {
    try {
      const Notice notice(error.failure(), error.rank(), detail_);
      std::vector<Request> requests;
      for (std::size_t m = 0; m < members_; ++m)
        if (m != at(me_) && !engine_.failure(rank_of(m)))
          requests.push_back(
              engine_.send(rank_of(m), tag(m, notice_round), std::as_bytes(std::span(&notice, 1))));
      engine_.wait_all(requests, {.deadline = after(notice_patience), .context = call_.context()});
    } catch (const std::exception&) {
      // It has failed too, or will learn from its own deadline.
    }
  }

  Engine& engine_;
  const Call& call_;
  const Collectives::Parts& parts_;
  const CallTags& tags_;
  Deadline deadline_;
  int me_;
  std::size_t members_;
  std::vector<CallHeader> own_;
  std::vector<CallHeader> theirs_;
  std::vector<Notice> said_;
  std::vector<Rank> watched_;
  std::string detail_;
  // By member; of sends_ header and data.
  std::vector<Request> headers_;
  std::vector<Request> notices_;
  std::vector<Request> data_;
  std::vector<Request> sends_;
};

}  // namespace

void exchange_parts(Engine& engine, const Call& call, const Collectives::Parts& parts,
                    const CallTags& tags, Deadline deadline) {
  Exchange(engine, call, parts, tags, deadline).run();
}

}  // namespace riffle::collective
