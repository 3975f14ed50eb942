#include "rpcrdma/v2_cel05/properties.h"

#include <array>

namespace weft::rpcrdma::v2_cel05 {

namespace {

using v2::Property;

constexpr std::array kIds = {
    v2::PropertyId{1, Property::kReceiveSize},  // RDMA2_PROPID_RBSIZ
    v2::PropertyId{2, Property::kReverse},      // RDMA2_PROPID_BRS
};
// RDMA2_BKREQSUP_NONE, _INLINE and _GENL.
constexpr std::array kReverseLevels = {ReverseSupport::kNone, ReverseSupport::kInline, ReverseSupport::kGeneral};

}  // namespace

const v2::PropertyTable kProperties{
    .ids = kIds, .reverse_levels = kReverseLevels, .defaults = {.reverse = ReverseSupport::kInline}};

}  // namespace weft::rpcrdma::v2_cel05
