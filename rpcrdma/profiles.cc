#include "rpcrdma/profiles.h"

#include "rpcrdma/v1/profile.h"

namespace weft::rpcrdma {

const Profile& profile_1() {
  return v1::kProfile;
}

}  // namespace weft::rpcrdma
