#include "apps/nfs/session.h"

#include <gtest/gtest.h>

namespace weft::nfs {
namespace {

using rpcrdma::CallStatus;

std::string error_of(nfs3::Proc proc, CallStatus status, bool did_not_run = false) {
  rpcrdma::Reply reply;
  reply.status = status;
  reply.did_not_run = did_not_run;
  return std::string(Session::call_error(proc, reply).message());
}

TEST(SessionErrors, ATransportErrorLeavesInDoubtWhatTheServerDid) {
  RecordProperty("proves", "U1-4-06 U1-6.6-05");
  const std::string doubt = "the server may or may not have done it";
  for (const CallStatus status : {CallStatus::kTransportError, CallStatus::kTimeout, CallStatus::kDisconnected}) {
    for (const nfs3::Proc proc : {nfs3::Proc::kRemove, nfs3::Proc::kWrite, nfs3::Proc::kSetattr}) {
      EXPECT_NE(error_of(proc, status).find(doubt), std::string::npos) << call_status_str(status);
    }
    EXPECT_EQ(error_of(nfs3::Proc::kRead, status).find(doubt), std::string::npos) << call_status_str(status);
  }
  // Refused before it ran.
  for (const CallStatus status : {CallStatus::kGarbageArgs, CallStatus::kProcUnavail, CallStatus::kVersMismatch}) {
    EXPECT_EQ(error_of(nfs3::Proc::kRemove, status).find(doubt), std::string::npos) << call_status_str(status);
  }
}

TEST(SessionErrors, ACallThatDidNotRunLeavesNoDoubt) {
  for (const CallStatus status : {CallStatus::kTransportError, CallStatus::kTimeout, CallStatus::kDisconnected}) {
    EXPECT_TRUE(error_of(nfs3::Proc::kWrite, status, true).ends_with("; the server did not do it"));
    EXPECT_FALSE(error_of(nfs3::Proc::kRead, status, true).ends_with("did not do it")) << "it changes nothing";
  }
}

}  // namespace
}  // namespace weft::nfs
