// A contender of `riffle bench allreduce`: N processes that run blocks of all-reduces when told and
// sleep otherwise. bench/allreduce/worker.h says how they talk.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "riffle/units.h"

namespace riffle::cli {

struct BenchPrograms {
  std::string folder;  // of the workers: where the command itself is
  std::string python;  // an interpreter that has torch
};

class BenchContender {
 public:
  // "riffle", "riffle-foreign", "openmpi", "gloo".
  static const std::vector<std::string>& names();
  // Why a contender cannot run here; empty when it can.
  static std::string missing(const std::string& name, const BenchPrograms& programs);

  BenchContender(const std::string& name, int workers, const BenchPrograms& programs);
  ~BenchContender();  // ends its processes
  BenchContender(const BenchContender&) = delete;
  BenchContender& operator=(const BenchContender&) = delete;

  // The time of each call, from when the last worker calls until the last has the result.
  std::vector<Seconds> run(Bytes size, int calls);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;
  struct Connection {
    File in;
    File out;
  };

  void start(const std::vector<std::string>& command);
  void accept_workers(int listener, int workers);

  std::string name_;
  std::vector<pid_t> processes_;
  std::vector<Connection> workers_;  // by rank
};

}  // namespace riffle::cli
