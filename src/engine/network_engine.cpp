// The engine of a job on one or several hosts: who is near, who is far, and how each is reached.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/json.h"
#include "engine/host_identity.h"
#include "engine/hybrid_engine.h"
#include "engine/interface.h"
#include "engine/meeting.h"
#include "riffle/error.h"
#include "riffle/make_engine.h"

namespace riffle {

namespace {

// What a rank says of itself before anybody opens anything, and after.
struct Introduction {
  int size = 0;
  std::string identity;
  std::string name;
};
struct Contact {
  int pid = 0;
  int fd = -1;          // of its segment
  std::string ip;       // these are empty where there is one host
  std::string address;  // on the network, as that has it
  std::string beacon;
};

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::string encode(const Introduction& own) {
  return Json{{"size", own.size}, {"identity", own.identity}, {"name", own.name}}.dump();
}

Introduction decode_introduction(const std::string& text, Rank rank) {
  const Json json = parse_json(text, fmt::format("introduction of rank {}", rank));
  const JsonReader reader(json, fmt::format("introduction of rank {}", rank));
  return {.size = static_cast<int>(reader.at("size").integer(1, 1 << 20)),
          .identity = reader.at("identity").text(),
          .name = reader.at("name").text()};
}

std::string encode(const Contact& own) {
  return Json{{"pid", own.pid},
              {"fd", own.fd},
              {"ip", own.ip},
              {"address", hex(own.address)},
              {"beacon", own.beacon}}
      .dump();
}

Contact decode_contact(const std::string& text, Rank rank) {
  const Json json = parse_json(text, fmt::format("contact of rank {}", rank));
  const JsonReader reader(json, fmt::format("contact of rank {}", rank));
  return {.pid = static_cast<int>(reader.at("pid").integer(1, INT32_MAX)),
          .fd = static_cast<int>(reader.at("fd").integer(0, INT32_MAX)),
          .ip = reader.at("ip").text(),
          .address = from_hex(reader.at("address").text()),
          .beacon = reader.at("beacon").text()};
}

void check(const NetworkEngineOptions& options) {
  if (options.size < 1) usage_error("engine: size {} must be at least 1", options.size);
  if (options.rank < 0 || options.rank >= options.size)
    usage_error("engine: rank {} is outside a world of {}", options.rank, options.size);
  if (options.job.empty()) usage_error("engine: the job needs a name");
  if (options.store == nullptr && options.place == nullptr)
    usage_error("engine: the ranks need a store to meet at");
}

std::vector<Introduction> introduce(engine::Meeting& meeting, const NetworkEngineOptions& options) {
  const Introduction own{.size = options.size,
                         .identity = options.host.empty() ? engine::host_identity() : options.host,
                         .name = options.host.empty() ? engine::host_name() : options.host};
  std::vector<Introduction> all;
  for (const std::string& text : meeting.exchange("host", encode(own))) {
    const Rank rank = static_cast<Rank>(all.size());
    all.push_back(decode_introduction(text, rank));
    if (all.back().size != options.size)
      usage_error("job \"{}\": rank {} is in a world of {}, rank {} in one of {}", options.job,
                  rank, all.back().size, options.rank, options.size);
  }
  return all;
}

// Equal text, same host: hosts that share a name are told apart by their address.
std::vector<std::string> names_of(const std::vector<Introduction>& hosts,
                                  const std::vector<Contact>& contacts) {
  std::map<std::string, std::map<std::string, std::string>> by_name;  // name -> identity -> address
  for (std::size_t r = 0; r < hosts.size(); ++r)
    by_name[hosts[r].name].emplace(hosts[r].identity, contacts[r].ip);
  std::vector<std::string> names;
  for (const Introduction& host : hosts) {
    const auto& owners = by_name[host.name];
    names.push_back(owners.size() == 1 ? host.name
                                       : fmt::format("{}/{}", host.name, owners.at(host.identity)));
  }
  return names;
}

std::uint64_t session_of(const std::string& token) {
  std::uint64_t session = 0;
  std::from_chars(token.data(), token.data() + std::min<std::size_t>(16, token.size()), session,
                  16);
  return session;
}

// Sockets fill a slow network as well as anything, know how long its ways are, and can be several
// for one way; only RDMA needs UCX.
std::string transport_for(const NetworkEngineOptions& options, const engine::Interface& interface) {
  if (options.transport.empty())
    return ucx_is_available() && engine::has_rdma(interface) ? "ucx" : "tcp";
  if (options.transport != "tcp" && options.transport != "ucx")
    usage_error("there is no transport \"{}\"; known: tcp, ucx", options.transport);
  return options.transport;
}

void check_reaches_others(const engine::Interface& interface,
                          const std::vector<Introduction>& hosts,
                          const NetworkEngineOptions& options) {
  const auto elsewhere = [&](const Introduction& host) {
    return options.host.empty() && host.identity != engine::host_identity();
  };
  if (interface.loopback() && std::ranges::any_of(hosts, elsewhere))
    usage_error(
        "the ranks are on several hosts, but the store is reached over interface {}, which no "
        "other host can reach; name an interface, or give the store an address on the network",
        interface.name);
}

}  // namespace

NetworkEngineOptions network_engine_options(const LaunchEnvironment& environment, Store& store) {
  NetworkEngineOptions options;
  options.store = &store;
  options.job = environment.job;
  options.rank = environment.rank;
  options.size = environment.size;
  options.interface = environment.interface;
  options.transport = environment.transport;
  return options;
}

std::unique_ptr<Engine> make_network_engine(const NetworkEngineOptions& options) {
  check(options);
  const engine::Layout layout{.size = options.size};
  const std::size_t self = static_cast<std::size_t>(options.rank);
  engine::Meeting meeting(options);
  const auto hosts = introduce(meeting, options);
  const auto is_near = [&](std::size_t r) { return hosts[r].identity == hosts[self].identity; };

  engine::HybridWorld world;
  world.self = options.rank;
  world.options = options;
  auto own = std::make_shared<engine::Segment>(engine::Segment::create(layout));
  Contact contact{.pid = getpid(), .fd = own->fd(), .ip = {}, .address = {}, .beacon = {}};
  const bool far = std::ranges::any_of(
      hosts, [&](const Introduction& host) { return host.identity != hosts[self].identity; });
  world.name = "shm";
  if (far) {
    const engine::Interface interface =
        engine::find_interface(options.interface, meeting.address());
    check_reaches_others(interface, hosts, options);
    const std::uint64_t session =
        session_of(meeting.follow("session", options.rank == 0 ? make_token() : ""));
    const engine::NetworkOptions network{.self = options.rank,
                                         .size = options.size,
                                         .session = session,
                                         .interface = interface.name,
                                         .ip = interface.address};
    // Rank 0's choice counts for all.
    world.name =
        meeting.follow("transport", options.rank == 0 ? transport_for(options, interface) : "");
    world.network =
        world.name == "ucx" ? engine::make_ucx_network(network) : engine::make_tcp_network(network);
    world.beacon = std::make_unique<engine::Beacon>(options.rank, interface.address, session);
    contact.ip = interface.address;
    contact.address = world.network->address();
    contact.beacon = world.beacon->address();
  }

  std::vector<Contact> contacts;
  for (const std::string& text : meeting.exchange("contact", encode(contact)))
    contacts.push_back(decode_contact(text, static_cast<Rank>(contacts.size())));
  for (std::size_t r = 0; r < hosts.size(); ++r) {
    const Contact& theirs = contacts[r];
    const bool near = is_near(r);
    world.segments.push_back(!near       ? nullptr
                             : r == self ? own
                                         : std::make_shared<engine::Segment>(
                                               engine::Segment::open(theirs.pid, theirs.fd)));
    world.pids.push_back(near ? theirs.pid : 0);
    world.addresses.push_back(near ? "" : theirs.address);
    world.beacons.push_back(near ? "" : theirs.beacon);
  }
  world.hosts = names_of(hosts, contacts);
  // From here on the hearts beat; when all have met, all have mapped all and listen.
  auto engine = std::make_unique<engine::HybridEngine>(std::move(world));
  meeting.meet();
  engine->all_joined();
  return engine;
}

}  // namespace riffle
