// What the doctor says: made-up networks and hosts.
#include "measure/doctor.h"

#include <gmock/gmock.h>

#include "made_up.h"

namespace riffle::measure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Network network_of(const Cluster& cluster) {
  Network network;
  network.measured = measured_on(cluster);
  network.fit = fit_cluster(network.measured);
  network.speakers = Membership::all(cluster.size()).ranks;
  network.echoes = PairTable<Echo>(cluster.size());
  for (int a = 0; a < cluster.size(); ++a)
    for (int b = 0; b < a; ++b) {
      const Seconds trip = 2 * cluster.latency(a, b);
      network.echoes.set_both(a, b, {trip, trip});
    }
  return network;
}

Network healthy() {
  return network_of(parse_cluster("flat:4,latency=1ms,bandwidth=1Gbps"));
}

std::vector<HostFacts> facts_of(int hosts) {
  std::vector<HostFacts> facts;
  for (int host = 0; host < hosts; ++host)
    facts.push_back({.name = "host" + std::to_string(host),
                     .address = "198.18.0.1",
                     .used = {"eth0", 1500, {125e6}},
                     .others = {},
                     .receive_buffer = mebibytes(6),
                     .send_buffer = mebibytes(4),
                     .congestion_control = "cubic"});
  return facts;
}

const PairTable<bool> kNoPackets(4);

TEST(Doctor, HasNothingToSayOfAHealthyNetwork) {
  EXPECT_THAT(diagnose(healthy(), facts_of(4), kNoPackets), IsEmpty());
}

TEST(Doctor, NamesSlowAndFarHosts) {
  Cluster cluster = parse_cluster("flat:6,latency=1ms,bandwidth=1Gbps");
  cluster.workers[1].link.bandwidth = {70e6};
  cluster.workers[4].link.latency = milliseconds(7);
  EXPECT_THAT(diagnose(network_of(cluster), facts_of(6), PairTable<bool>(6)),
              ElementsAre(HasSubstr("host1 is slow: it carries 560 Mbps, others 1.00 Gbps"),
                          HasSubstr("host4 is far: its own link takes 7.00 ms")));
}

TEST(Doctor, NamesAsymmetryAndUnsteadyHosts) {
  Network network = healthy();
  for (int other = 0; other < 4; ++other) {
    if (other == 2) continue;
    network.measured.rate.at(2, other) = Bandwidth{80e6};
    network.echoes.set_both(2, other, {milliseconds(2), milliseconds(4)});
  }
  EXPECT_THAT(diagnose(network, facts_of(4), kNoPackets),
              ElementsAre(HasSubstr("host2 sends at 640 Mbps and receives at 1.00 Gbps"),
                          HasSubstr("host2 answers unsteadily")));
}

TEST(Doctor, NamesSettingsThatDifferAndAFasterInterface) {
  std::vector<HostFacts> facts = facts_of(4);
  facts[0].others = {{"eth1", 1500, {1.25e9}}};
  facts[3].used.mtu = 9000;
  facts[3].congestion_control = "bbr";
  EXPECT_THAT(diagnose(healthy(), facts, kNoPackets),
              ElementsAre(HasSubstr("RIFFLE_INTERFACE=eth1"),
                          HasSubstr("the MTU differs: 1500 on host0, host1, host2; 9000 on host3"),
                          HasSubstr("TCP's congestion control differs")));
}

TEST(Doctor, NamesBuffersThatCannotFillAPath) {
  const Network network = network_of(parse_cluster("flat:4,latency=50ms,bandwidth=1Gbps"));
  EXPECT_THAT(diagnose(network, facts_of(4), kNoPackets),
              ElementsAre(HasSubstr("tcp_rmem of 4 hosts ends at 6.00 MiB"),
                          HasSubstr("net.ipv4.tcp_wmem=\"4096 131072 67108864\"")));
}

TEST(Doctor, NamesPathsThatLosePackets) {
  PairTable<bool> passed(4);
  passed.at(0, 1) = true;
  passed.at(0, 3) = false;
  EXPECT_THAT(diagnose(healthy(), facts_of(4), passed),
              ElementsAre(HasSubstr("host0 to host3 (1500 bytes)")));
}

TEST(HostFacts, SurviveAsJson) {
  HostFacts facts = facts_of(1).front();
  facts.others = {{"ib0", 4092, {5e9}}, {"eth1", 1500, {}}};
  EXPECT_EQ(host_facts_from_json(to_json(facts)), facts);
}

}  // namespace
}  // namespace riffle::measure
