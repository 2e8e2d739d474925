// A verification as a part of larger documents.
#pragma once

#include "base/json.h"
#include "riffle/verify.h"

namespace riffle {

Json json_of(const Verification& verification);

}  // namespace riffle
