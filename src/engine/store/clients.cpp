#include "engine/store/clients.h"

namespace riffle::store {

Phase phase_of(const Session& session) {
  if (!session.output().empty()) return Phase::writing;
  if (session.waiting()) return Phase::waiting;
  if (!session.has_shaken_hands()) return Phase::handshake;
  return session.partial() ? Phase::reading : Phase::idle;
}

Client& Clients::add(Id id, Descriptor socket, const std::string& peer, Table& table,
                     const std::string& token) {
  return clients_.try_emplace(id, std::move(socket), peer, table, token).first->second;
}

void Clients::drop(Id id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  set_wait(id, found->second, {});
  set_due(id, found->second, Deadline::max());
  clients_.erase(found);
}

Client* Clients::find(Id id) {
  const auto found = clients_.find(id);
  return found == clients_.end() ? nullptr : &found->second;
}

void Clients::set_due(Id id, Client& client, Deadline due) {
  due_.erase({client.due, id});
  client.due = due;
  if (due != Deadline::max()) due_.emplace(due, id);
}

Deadline Clients::next_due() const {
  return due_.empty() ? Deadline::max() : due_.begin()->first;
}

void Clients::set_wait(Id id, Client& client, const std::string& key) {
  if (const auto found = waiting_.find(client.waits_for); found != waiting_.end()) {
    found->second.erase(id);
    if (found->second.empty()) waiting_.erase(found);
  }
  client.waits_for = key;
  if (!key.empty()) waiting_[key].insert(id);
}

std::set<Clients::Id> Clients::waiting_for(const std::string& key) const {
  const auto found = waiting_.find(key);
  return found == waiting_.end() ? std::set<Id>() : found->second;
}

}  // namespace riffle::store
