#include "rpcrdma/v2_wg07/properties.h"

#include <array>

namespace weft::rpcrdma::v2_wg07 {

namespace {

using v2::Property;

constexpr std::array kIds = {
    v2::PropertyId{1, Property::kSendSize},      // RDMA2_PROPID_SBSIZ
    v2::PropertyId{2, Property::kReceiveSize},   // RDMA2_PROPID_RBSIZ
    v2::PropertyId{3, Property::kSegmentSize},   // RDMA2_PROPID_RSSIZ
    v2::PropertyId{4, Property::kSegmentCount},  // RDMA2_PROPID_RCSIZ
    v2::PropertyId{5, Property::kReverse},       // RDMA2_PROPID_BRS
    v2::PropertyId{6, Property::kHostAuth},      // RDMA2_PROPID_HOSTAUTH
};
// RDMA2_RVRSDIR_NONE, _SIMPLE, _CONT and _GENL.
constexpr std::array kReverseLevels = {ReverseSupport::kNone, ReverseSupport::kInline, ReverseSupport::kContinued,
                                       ReverseSupport::kGeneral};

}  // namespace

const v2::PropertyTable kProperties{.ids = kIds, .reverse_levels = kReverseLevels, .defaults = {}};

}  // namespace weft::rpcrdma::v2_wg07
