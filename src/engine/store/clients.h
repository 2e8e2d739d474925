// The server's clients: by number, by the time at which something must have happened, and by the
// key they wait for. Whoever drops a client drops it from all of these.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>

#include "base/descriptor.h"
#include "engine/store/session.h"

namespace riffle::store {

// What a client is doing, and so what its time limit means.
enum class Phase { handshake, idle, reading, waiting, writing };
Phase phase_of(const Session& session);

struct Client {
  Client(Descriptor connected, std::string from, Table& table, const std::string& token)
      : socket(std::move(connected)), peer(std::move(from)), session(table, token) {}

  Descriptor socket;
  std::string peer;
  Session session;
  Phase phase = Phase::handshake;
  std::uint32_t events = 0;        // what epoll looks for
  Deadline due = Deadline::max();  // when the phase must be over
  std::string waits_for;           // a key, or empty
};

class Clients {
 public:
  using Id = std::uint64_t;

  Client& add(Id id, Descriptor socket, const std::string& peer, Table& table,
              const std::string& token);
  void drop(Id id);
  Client* find(Id id);  // nullptr when it has gone
  [[nodiscard]] int size() const { return static_cast<int>(clients_.size()); }

  void set_due(Id id, Client& client, Deadline due);
  [[nodiscard]] Deadline next_due() const;
  [[nodiscard]] Id first_due() const { return due_.begin()->second; }

  void set_wait(Id id, Client& client, const std::string& key);  // empty: waits no more
  [[nodiscard]] std::set<Id> waiting_for(const std::string& key) const;

 private:
  std::unordered_map<Id, Client> clients_;
  std::set<std::pair<Deadline, Id>> due_;
  std::unordered_map<std::string, std::set<Id>> waiting_;
};

}  // namespace riffle::store
