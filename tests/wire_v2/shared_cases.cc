// Rules that both drafts have, in the words of either.

#include "tests/wire_v2/conversation_cases.h"
#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

constexpr Segment kSource = {0x5001, 5000, 0x10000};
constexpr Segment kSink = {0x5002, 4096, 0x20000};

bool is_cel05(const Talk& talk) {
  return talk.message(kClient, 4).profile == Profile::kCel05;
}

// A Call with a Write chunk, and the Reply that returns it with this length.
void ask_for_data(Talk& talk, std::uint32_t inv_handle = 0) {
  talk.open();
  Message call = talk.call(kClient, kXid);
  call.writes = {{kSink}};
  call.inv_handle = inv_handle;
  talk.say(kClient, call);
}

Message data(const Talk& talk, std::uint32_t len) {
  Message reply = talk.reply(kServer, kXid);
  reply.writes = {{{kSink.handle, len, kSink.offset}}};
  return reply;
}

Segment front(const Segment& segment, std::uint32_t len) {
  return {segment.handle, len, segment.offset};
}

void grow_receives(Talk& talk, End end, std::uint32_t size) {
  if (is_cel05(talk)) {
    talk.say(end, talk.properties(end, cel05::kConnprop, {{cel05::kRbsiz, word(size)}}));
  } else {
    talk.say(end, talk.properties(end, wg07::kConnpropFinal, {{wg07::kRbsiz, word(size)}, {wg07::kSbsiz, word(size)}}));
  }
}

struct Shared {
  const char* name;
  Rules rules;
  void (*healthy)(Talk&);
  void (*broken)(Talk&);
};

const Shared kShared[] = {
    {"TheClientSpeaksFirst",
     {"R2-8-2", "W2-4.3-3"},
     [](Talk& talk) { talk.open(); },
     [](Talk& talk) {
       grow_receives(talk, kServer, 8192);
       talk.open();
     }},
    {"TheFirstMessageIsShort",
     {"R2-8-3", "W2-4.3-4"},
     [](Talk& talk) {
       talk.open();
       talk.say(kClient, talk.call(kClient, kXid, 2000));
     },
     [](Talk& talk) { talk.say(kClient, talk.call(kClient, kXid, 2000)); }},
    {"TheSecondMessageWaits",
     {"R2-8-1", "W2-4.3-1"},
     [](Talk& talk) {
       grow_receives(talk, kClient, 8192);
       grow_receives(talk, kServer, 8192);
       talk.say(kClient, talk.call(kClient, kXid));
     },
     [](Talk& talk) {
       grow_receives(talk, kClient, 8192);
       talk.say(kClient, talk.call(kClient, kXid));
     }},
    {"AnErrorAnswersTheFirstMessageAlone",
     {"R2-8-1", "W2-4.3-1"},
     [](Talk& talk) {
       talk.say(kClient, talk.call(kClient, kXid));
       talk.say(kServer, talk.error(kServer, kXid, kErrBadXdr));
       talk.open();
     },
     [](Talk& talk) {
       talk.say(kClient, talk.call(kClient, kXid));
       talk.say(kServer, talk.error(kServer, kXid, kErrBadXdr));
       talk.say(kClient, talk.call(kClient, kXid + 1));
       talk.say(kClient, talk.call(kClient, kXid + 2));
     }},
    {"MessagesFitTheReceives",
     {"R2-3.3-3", "W2-4.2.2-1"},
     [](Talk& talk) {
       talk.open();
       grow_receives(talk, kClient, 8192);
       grow_receives(talk, kServer, 8192);
       talk.say(kClient, talk.call(kClient, kXid, 8000));
       talk.say(kServer, talk.reply(kServer, kXid, 8000));
     },
     [](Talk& talk) {
       talk.open();
       grow_receives(talk, kClient, 8192);
       talk.say(kClient, talk.call(kClient, kXid, 8000));
     }},
    {"XidsOfCallsDiffer",
     {"R1-7.1.4-03", "W2-3.1.3-1"},
     [](Talk& talk) {
       talk.open();
       for (int i = 0; i < 2; ++i) {
         talk.say(kClient, talk.call(kClient, kXid));
         talk.say(kServer, talk.reply(kServer, kXid));
       }
     },
     [](Talk& talk) {
       talk.open();
       talk.say(kClient, talk.call(kClient, kXid));
       talk.say(kClient, talk.call(kClient, kXid));
     }},
    {"RepliesAnswerCalls",
     {"R2-7.2.2-3", "W2-3.1.3-1"},
     [](Talk& talk) { talk.open(); },
     [](Talk& talk) {
       talk.open();
       talk.say(kServer, talk.reply(kServer, kXid));
     }},
    {"OneReplyToACall",
     {"R2-7.2.2-3", "W2-3.1.3-1"},
     [](Talk& talk) { ask_for_data(talk), talk.say(kServer, data(talk, 0)); },
     [](Talk& talk) {
       ask_for_data(talk);
       talk.say(kServer, data(talk, 0));
       talk.say(kServer, talk.reply(kServer, kXid));
     }},
    {"ErrorsHaveTheirRequestsXid",
     {"R2-7.2.4-2", "W2-7-2"},
     [](Talk& talk) {
       ask_for_data(talk);
       talk.say(kServer, talk.error(kServer, kXid, kErrBadXdr));
     },
     [](Talk& talk) {
       ask_for_data(talk);
       talk.say(kServer, talk.error(kServer, kXid + 1, kErrBadXdr));
     }},
    {"ErrorsHaveTheirRequestsVersion",
     {"R2-7.2.4-2", "W2-7-2"},
     [](Talk& talk) {
       talk.say(kClient, talk.call(kClient, kXid));
       talk.say(kServer, talk.error(kServer, kXid, kErrVers));
     },
     [](Talk& talk) {
       talk.say(kClient, talk.call(kClient, kXid));
       Message error = talk.error(kServer, kXid, kErrVers);
       error.version = 3;
       talk.say(kServer, error);
     }},
    {"ErrVersIsHeeded",
     {"R2-8.2-2", "W2-7.1.1-2"},
     [](Talk& talk) {
       talk.say(kClient, talk.call(kClient, kXid));
       talk.say(kServer, talk.error(kServer, kXid, kErrVers));
       talk.open();
     },
     [](Talk& talk) {
       talk.say(kClient, talk.call(kClient, kXid));
       Message error = talk.error(kServer, kXid, kErrVers);
       error.error.words = {1, 1};
       talk.say(kServer, error);
       talk.say(kClient, talk.call(kClient, kXid));
     }},
    {"NothingIsInvalidatedUnasked",
     {"R2-7.2.3-3", "W2-6.5-2"},
     [](Talk& talk) {
       ask_for_data(talk, kSink.handle);
       talk.say(kServer, data(talk, 0), kSink.handle);
     },
     [](Talk& talk) {
       ask_for_data(talk);
       talk.say(kServer, data(talk, 0), kSink.handle);
     }},
    {"NothingElseIsInvalidated",
     {"R2-7.2.3-4", "W2-6.5-2"},
     [](Talk& talk) {
       ask_for_data(talk, kSink.handle);
       talk.say(kServer, data(talk, 0));
     },
     [](Talk& talk) {
       ask_for_data(talk, kSink.handle);
       talk.say(kServer, data(talk, 0), kSource.handle);
     }},
    {"ErrorsInvalidateNothing",
     {"R2-7.2.3-4", "W2-6.5-3"},
     [](Talk& talk) {
       ask_for_data(talk, kSink.handle);
       talk.say(kServer, talk.error(kServer, kXid, kErrBadXdr));
     },
     [](Talk& talk) {
       ask_for_data(talk, kSink.handle);
       talk.say(kServer, talk.error(kServer, kXid, kErrBadXdr), kSink.handle);
     }},
    {"CallsInvalidateNothing",
     {"R2-7.2.3-4", "W2-6.5-3"},
     [](Talk& talk) { ask_for_data(talk, kSink.handle); },
     [](Talk& talk) {
       ask_for_data(talk, kSink.handle);
       talk.say(kClient, talk.call(kClient, kXid + 1), kSink.handle);
     }},
    {"WriteChunksAreReturned",
     {"R1-4.4.6-04", "W2-4.5.2.1-2"},
     [](Talk& talk) {
       ask_for_data(talk);
       talk.conversation().rdma_write(kServer, front(kSink, 1000));
       talk.say(kServer, data(talk, 1000));
     },
     [](Talk& talk) {
       ask_for_data(talk);
       talk.say(kServer, talk.reply(kServer, kXid));
     }},
    {"WriteChunksAreReturnedNoLonger",
     {"R1-4.4.6-04", "W2-4.5.2.1-2"},
     [](Talk& talk) {
       ask_for_data(talk);
       talk.conversation().rdma_write(kServer, kSink);
       talk.say(kServer, data(talk, kSink.length));
     },
     [](Talk& talk) {
       ask_for_data(talk);
       talk.conversation().rdma_write(kServer, kSink);
       talk.say(kServer, data(talk, kSink.length + 1));
     }},
    {"RepliesTellOfWrittenOctets",
     {"R1-4.4.6-04", "W2-4.5.2.1-2"},
     [](Talk& talk) {
       ask_for_data(talk);
       talk.conversation().rdma_write(kServer, front(kSink, 1000));
       talk.say(kServer, data(talk, 1000));
     },
     [](Talk& talk) {
       ask_for_data(talk);
       talk.conversation().rdma_write(kServer, front(kSink, 999));
       talk.say(kServer, data(talk, 1000));
     }},
    {"ReplyChunksAreOffered",
     {"R1-5.3.3-05", "W2-6.6.3-2"},
     [](Talk& talk) {
       talk.open();
       Message call = talk.call(kClient, kXid);
       call.reply = {kSink};
       talk.say(kClient, call);
       talk.conversation().rdma_write(kServer, kSink);
       talk.say(kServer, talk.external_reply(kServer, kXid, kSink));
     },
     [](Talk& talk) {
       talk.open();
       talk.say(kClient, talk.call(kClient, kXid));
       talk.say(kServer, talk.external_reply(kServer, kXid, kSink));
     }},
    {"ReadsStayWithinSegments",
     {"R1-4.1-01", "W2-4-1"},
     [](Talk& talk) {
       talk.open();
       talk.say(kClient, talk.external_call(kClient, kXid, kSource));
       talk.conversation().rdma_read(kServer, front(kSource, 1000));
       talk.conversation().rdma_read(kServer, {kSource.handle, 4000, kSource.offset + 1000});
       talk.say(kServer, talk.reply(kServer, kXid));
     },
     [](Talk& talk) {
       talk.open();
       talk.say(kClient, talk.external_call(kClient, kXid, kSource));
       talk.conversation().rdma_read(kServer, {kSource.handle, 4001, kSource.offset + 1000});
       talk.say(kServer, talk.reply(kServer, kXid));
     }},
    {"WritesStayWithinSegments",
     {"R1-4.1-01", "W2-4-1"},
     [](Talk& talk) {
       ask_for_data(talk);
       talk.conversation().rdma_write(kServer, kSink);
     },
     [](Talk& talk) {
       ask_for_data(talk);
       talk.conversation().rdma_write(kServer, {kSink.handle, kSink.length, kSink.offset - 1});
     }},
    {"SourcesAreNotWritten",
     {"R1-4.1-01", "W2-4-1"},
     [](Talk& talk) {
       talk.open();
       talk.say(kClient, talk.external_call(kClient, kXid, kSource));
     },
     [](Talk& talk) {
       talk.open();
       talk.say(kClient, talk.external_call(kClient, kXid, kSource));
       talk.conversation().rdma_write(kServer, kSource);
     }},
    {"NothingIsReadAfterTheReply",
     {"R1-4.1-01", "W2-4-1"},
     [](Talk& talk) {
       talk.open();
       talk.say(kClient, talk.external_call(kClient, kXid, kSource));
       talk.say(kServer, talk.reply(kServer, kXid));
     },
     [](Talk& talk) {
       talk.open();
       talk.say(kClient, talk.external_call(kClient, kXid, kSource));
       talk.say(kServer, talk.reply(kServer, kXid));
       talk.conversation().rdma_read(kServer, kSource);
     }},
    {"RequestersDoNoRdma",
     {"R1-4.1-01", "W2-4-1"},
     [](Talk& talk) { ask_for_data(talk); },
     [](Talk& talk) {
       ask_for_data(talk);
       talk.conversation().rdma_write(kClient, kSink);
     }},
    {"ReverseCallsWhereTheyAreTaken",
     {"R2-6.2.2-2", "W2-4.6.3-1"},
     [](Talk& talk) {
       talk.open();
       const bool is_old = is_cel05(talk);
       talk.say(kClient, talk.properties(kClient, is_old ? cel05::kConnprop : wg07::kConnpropFinal,
                                         {{is_old ? cel05::kBrs : wg07::kBrs, word(1)}}));
       talk.say(kServer, talk.call(kServer, kXid));
       talk.say(kClient, talk.reply(kClient, kXid));
     },
     [](Talk& talk) {
       const bool is_old = is_cel05(talk);
       talk.say(kClient, talk.properties(kClient, is_old ? cel05::kConnprop : wg07::kConnpropFinal,
                                         {{is_old ? cel05::kBrs : wg07::kBrs, word(0)}}));
       grow_receives(talk, kServer, 4096);
       // The Reply proves that the server has heard of it.
       talk.open();
       talk.say(kServer, talk.call(kServer, kXid));
     }},
    {"ReverseCallsWithoutChunks",
     {"R2-6.2.2-3", "W2-5.2.5-2"},
     [](Talk& talk) {
       talk.open();
       const bool is_old = is_cel05(talk);
       talk.say(kClient, talk.properties(kClient, is_old ? cel05::kConnprop : wg07::kConnpropFinal,
                                         {{is_old ? cel05::kBrs : wg07::kBrs, word(is_old ? 2 : 3)}}));
       talk.say(kServer, talk.external_call(kServer, kXid, kSource));
     },
     [](Talk& talk) {
       talk.open();
       const bool is_old = is_cel05(talk);
       talk.say(kClient, talk.properties(kClient, is_old ? cel05::kConnprop : wg07::kConnpropFinal,
                                         {{is_old ? cel05::kBrs : wg07::kBrs, word(is_old ? 1 : 2)}}));
       talk.say(kServer, talk.external_call(kServer, kXid, kSource));
     }},
};

}  // namespace

std::vector<Case> shared_cases() {
  std::vector<Case> cases;
  for (const Shared& shared : kShared) {
    cases.push_back({shared.name, Profile::kCel05, shared.rules.cel05, shared.healthy, shared.broken});
    cases.push_back({shared.name, Profile::kWg07, shared.rules.wg07, shared.healthy, shared.broken});
  }
  return cases;
}

}  // namespace weft::wire_v2
