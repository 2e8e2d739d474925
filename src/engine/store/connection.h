// A client's connection that has presented its token. One call at a time.
#pragma once

#include <stdexcept>
#include <string>

#include "base/descriptor.h"
#include "engine/store/protocol.h"

namespace riffle::store {

// Whom is asked for what, for errors.
struct Question {
  const StoreAddress& store;
  std::string asked;
};

class Connection {
 public:
  // Connects and shakes hands, again and again until the deadline. UsageError for a refused token.
  Connection(const Question& question, const std::string& token, Deadline deadline);

  // StoreError when the connection breaks or the answer is late; it is of no use afterwards.
  Reply call(const std::string& message, const Question& question, Deadline deadline);
  // Nothing has happened to it while it was not used.
  [[nodiscard]] bool fresh() const;

 private:
  bool handshake(const Question& question, const std::string& token, Deadline deadline,
                 std::string& problem);

  Descriptor socket_;
};

}  // namespace riffle::store
