// Bad files as a user meets them: one line that names the file, the field and the value.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "refusal.h"
#include "riffle/cluster.h"
#include "riffle/import.h"
#include "temporary_folder.h"

namespace riffle {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(BadInput, TraceFiles) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::filesystem::path& path) {
    std::string message = refusal([&] { load_trace_file(path); });
    EXPECT_THAT(message, StartsWith(path.string() + ": "));
    return message;
  };
  const auto file = [&](std::string_view text) { return refused(folder.file("t.json", text)); };
  EXPECT_THAT(refused(folder / "missing.json"), EndsWith("No such file or directory"));
  EXPECT_THAT(refused(folder.path()), EndsWith("not a regular file"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refused(folder / "pipe"), EndsWith("not a regular file"));
  const auto huge = folder.file("huge.json", "");
  std::filesystem::resize_file(huge, std::uintmax_t{1} << 40);
  EXPECT_THAT(refused(huge), EndsWith("1024 GiB is too large (at most 256 MiB)"));

  EXPECT_THAT(file(""), HasSubstr("an empty file is in no known format"));
  EXPECT_THAT(file(std::string("\x7f"
                               "ELF\0\xff\xfe\n",
                               8)),
              HasSubstr("in no known format"));
  EXPECT_THAT(file(R"({"riffle": "trace", "version": 1, "model": "ti)"),
              HasSubstr("not valid JSON"));
  EXPECT_THAT(file(R"({"riffle": "trace", "layers": )" + std::string(100'000, '[')),
              HasSubstr("nested deeper than 64"));
  EXPECT_THAT(file(R"({"riffle": "trace", "version": 7})"), HasSubstr("version: '7'"));
  EXPECT_THAT(file(R"({"riffle": "plan", "version": 1})"), HasSubstr("riffle: '\"plan\"'"));
  EXPECT_THAT(file(R"({"riffle": "trace", "version": 1, "model": "m", "dtype": "f32", "batch": 1,
                       "layers": []})"),
              HasSubstr("layers: no layer has parameters"));
  EXPECT_THAT(file(R"({"riffle": "trace", "version": 1, "model": "m", "dtype": "f32", "batch": 1,
                       "layers": [{"name": "a", "elements": 1, "forward": -1, "backward": 1}]})"),
              HasSubstr("layers[0]: forward: '-1': must be at least 0"));
  EXPECT_THAT(
      file(R"({"riffle": "trace", "version": 1, "model": "m", "dtype": "f32", "batch": NaN})"),
      HasSubstr("not valid JSON"));
}

TEST(BadInput, ClusterFiles) {
  const TemporaryFolder folder;
  const auto file = [&](std::string_view text) {
    const auto path = folder.file("c.json", text);
    std::string message = refusal([&] { load_cluster(path.string()); });
    EXPECT_THAT(message, StartsWith(path.string() + ": "));
    return message;
  };
  EXPECT_THAT(refusal([&] { load_cluster((folder / "no.json").string()); }),
              EndsWith("no.json: cannot read: No such file or directory"));
  EXPECT_THAT(
      file(R"({"riffle": "cluster", "version": 1, "spec": "flat:4,latency=1,bandwidth=1Gbps"})"),
      HasSubstr("spec: cluster 'flat:4,latency=1,bandwidth=1Gbps': latency: '1' has no unit"));
  EXPECT_THAT(file(R"({"riffle": "cluster", "version": 1, "domains": [{"name": "root"}],
                       "workers": []})"),
              HasSubstr("workers: 'array': needs 1 to 1000000 entries"));
  const auto worker = [&](std::string_view fields) {
    return file(fmt::format(R"({{"riffle": "cluster", "version": 1, "domains": [{{"name": "root"}}],
                                "workers": [{{{}}}]}})",
                            fields));
  };
  EXPECT_THAT(worker(R"("domain": 0, "latency": -1e-6, "bandwidth": 1e9)"),
              HasSubstr("workers[0]: latency: '-1e-06': must be at least 0"));
  EXPECT_THAT(worker(R"("domain": 0, "latency": 1e-6, "bandwidth": 0)"),
              HasSubstr("workers[0]: bandwidth: '0': must be above zero"));
  EXPECT_THAT(worker(R"("domain": 1, "latency": 1e-6, "bandwidth": 1)"),
              HasSubstr("workers[0]: domain: '1': must be from 0 to 0"));
  EXPECT_THAT(worker(R"("domain": 0, "latency": 1e-6, "bandwidth": 1, "slow": 0)"),
              HasSubstr("workers[0]: slow: '0': must be above zero"));
}

TEST(BadInput, ClusterSpecs) {
  const auto spec = [](const char* text) { return refusal([&] { parse_cluster(text); }); };
  EXPECT_THAT(spec("flat:0,latency=1us,bandwidth=1Gbps"), HasSubstr("'0' must be from 1 to"));
  EXPECT_THAT(spec("flat:4,latency=-1us,bandwidth=1Gbps"),
              HasSubstr("latency: '-1us' is negative"));
  EXPECT_THAT(spec("flat:4,latency=1min,bandwidth=1Gbps"), HasSubstr("'1min' has an unknown unit"));
  EXPECT_THAT(spec("flat:4,latency=nanus,bandwidth=1Gbps"), HasSubstr("latency"));
  EXPECT_THAT(spec("flat:4,latency=1us,bandwidth=1e305GB/s"),
              HasSubstr("'1e305GB/s' is too large"));
  EXPECT_THAT(spec("flat:99999999999999999999,latency=1us,bandwidth=1Gbps"),
              HasSubstr("not a whole number"));
  EXPECT_THAT(spec("racks:1000x1001,inner=1us/1Gbps,outer=1us/1Gbps"),
              HasSubstr("more than 1000000 workers"));
  EXPECT_THAT(spec("flat:4,latency=1us,latency=2us,bandwidth=1Gbps"), HasSubstr("latency"));
  EXPECT_THAT(spec("flat:4,latency=1us,bandwidth=1Gbps,straggle=200%*3"),
              HasSubstr("at most 100%"));
  EXPECT_THAT(spec("flat:4\n,x"), HasSubstr("cluster"));
}

}  // namespace
}  // namespace riffle
