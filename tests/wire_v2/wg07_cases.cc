// Rules of wg07 alone: credits that count messages, messages in parts, properties that bound segments.

#include "tests/wire_v2/conversation_cases.h"
#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

constexpr Segment kSink = {0x5002, 4096, 0x20000};

void say_with_credit(Talk& talk, End from, Message message, std::uint32_t credit) {
  message.credit = credit;
  talk.say(from, message);
}

// After it the client may send up to its message of this number; it has sent one.
void open_with_limit(Talk& talk, std::uint32_t limit) {
  talk.say(kClient, talk.call(kClient, 1));
  say_with_credit(talk, kServer, talk.reply(kServer, 1), limit);
}

void call_times(Talk& talk, std::uint32_t times) {
  for (std::uint32_t i = 0; i < times; ++i) talk.say(kClient, talk.call(kClient, kXid + i));
}

void tell(Talk& talk, End from, std::uint32_t type, std::vector<Property> properties) {
  talk.say(from, talk.properties(from, type, std::move(properties)));
}

// The server tells of a limit on segments, and the client must have heard of it: it needs the credit that came with it.
void open_with_property(Talk& talk, std::uint32_t id, std::uint32_t value) {
  say_with_credit(talk, kClient, talk.properties(kClient, wg07::kConnpropFinal, {}), 32);
  say_with_credit(talk, kServer, talk.properties(kServer, wg07::kConnpropFinal, {{id, word(value)}}), 33);
}

Message call_with_sink(const Talk& talk, const Chunk& sink) {
  Message call = talk.call(kClient, kXid);
  call.writes = {sink};
  return call;
}

// The first two thirds of a Call of 60 octets; the last 20 are to follow.
const Bytes kCall = rpc_call(kXid, 20);
void begin_call(Talk& talk) {
  talk.open();
  talk.say(kClient, talk.part(kClient, kXid, slice(kCall, 0, 20), 40));
  talk.say(kClient, talk.part(kClient, kXid, slice(kCall, 20, 40), 20));
}
void end_call(Talk& talk) {
  talk.say(kClient, talk.last_part(kClient, kXid, slice(kCall, 40, 60)));
}

// A Reply of 44 octets, after 20 of them.
const Bytes kReply = rpc_reply(kXid, 20);
void begin_reply(Talk& talk) {
  talk.open();
  talk.say(kClient, call_with_sink(talk, {kSink}));
  talk.say(kServer, talk.reply_part(kServer, kXid, slice(kReply, 0, 20), 24));
}
Message end_of_reply(const Talk& talk) {
  Message reply = talk.reply(kServer, kXid);
  reply.payload = slice(kReply, 20, 44);
  reply.writes = {{{kSink.handle, 0, kSink.offset}}};
  return reply;
}

}  // namespace

std::vector<Case> wg07_cases() {
  constexpr Profile kProfile = Profile::kWg07;
  return {
      {"MessagesWithinTheLimit", kProfile, "W2-4.2.1-8",
       [](Talk& talk) {
         open_with_limit(talk, 3);
         call_times(talk, 2);
       },
       [](Talk& talk) {
         open_with_limit(talk, 3);
         call_times(talk, 3);
       }},
      {"PartsCountAsMessages", kProfile, "W2-4.2.1-8",
       [](Talk& talk) {
         open_with_limit(talk, 4);
         talk.say(kClient, talk.part(kClient, kXid, slice(kCall, 0, 20), 40));
         talk.say(kClient, talk.part(kClient, kXid, slice(kCall, 20, 40), 20));
         end_call(talk);
       },
       [](Talk& talk) {
         open_with_limit(talk, 3);
         talk.say(kClient, talk.part(kClient, kXid, slice(kCall, 0, 20), 40));
         talk.say(kClient, talk.part(kClient, kXid, slice(kCall, 20, 40), 20));
         end_call(talk);
       }},
      {"OneGrantMayBeBeyondTheLimit", kProfile, "W2-4.2.1-8",
       [](Talk& talk) {
         open_with_limit(talk, 2);
         call_times(talk, 1);
         talk.say(kClient, talk.message(kClient, wg07::kGrant));
       },
       [](Talk& talk) {
         open_with_limit(talk, 2);
         call_times(talk, 1);
         talk.say(kClient, talk.message(kClient, wg07::kGrant));
         talk.say(kClient, talk.message(kClient, wg07::kGrant));
       }},
      {"ErrorsTakeCredits", kProfile, "W2-4.2.1-8",
       [](Talk& talk) {
         say_with_credit(talk, kClient, talk.call(kClient, 1), 2);
         talk.say(kServer, talk.reply(kServer, 1));
         say_with_credit(talk, kClient, talk.call(kClient, 2), 2);
         talk.say(kServer, talk.error(kServer, 2, kErrBadXdr));
       },
       [](Talk& talk) {
         say_with_credit(talk, kClient, talk.call(kClient, 1), 1);
         talk.say(kServer, talk.reply(kServer, 1));
         say_with_credit(talk, kClient, talk.call(kClient, 2), 1);
         talk.say(kServer, talk.error(kServer, 2, kErrBadXdr));
       }},
      {"TheLimitDoesNotGoBack", kProfile, "W2-4.2.1-11",
       [](Talk& talk) {
         open_with_limit(talk, 40);
         call_times(talk, 1);
         say_with_credit(talk, kServer, talk.reply(kServer, kXid), 40);
       },
       [](Talk& talk) {
         open_with_limit(talk, 40);
         call_times(talk, 1);
         say_with_credit(talk, kServer, talk.reply(kServer, kXid), 39);
       }},
      {"TheLimitIsFinite", kProfile, "W2-4.2.1-10",
       [](Talk& talk) { say_with_credit(talk, kClient, talk.call(kClient, kXid), 0x7ffffffe); },
       [](Talk& talk) { say_with_credit(talk, kClient, talk.call(kClient, kXid), 0x7fffffff); }},
      {"GrantsAreNotAnsweredByGrants", kProfile, "W2-4.2.1.1-1",
       [](Talk& talk) {
         talk.open();
         talk.say(kClient, talk.message(kClient, wg07::kGrant));
         talk.say(kClient, talk.call(kClient, kXid));
         talk.say(kServer, talk.message(kServer, wg07::kGrant));
       },
       [](Talk& talk) {
         talk.open();
         talk.say(kClient, talk.message(kClient, wg07::kGrant));
         talk.say(kServer, talk.message(kServer, wg07::kGrant));
       }},
      // It gives more than the peer's GRANT took: its end has got more buffers meanwhile.
      {"GrantsOfNewCreditsAreFree", kProfile, "W2-4.2.1.1-1",
       [](Talk& talk) {
         open_with_limit(talk, 33);
         talk.say(kClient, talk.message(kClient, wg07::kGrant));
         say_with_credit(talk, kServer, talk.message(kServer, wg07::kGrant), 35);
       },
       [](Talk& talk) {
         open_with_limit(talk, 33);
         talk.say(kClient, talk.message(kClient, wg07::kGrant));
         say_with_credit(talk, kServer, talk.message(kServer, wg07::kGrant), 34);
       }},
      // The server may have heard later of messages that it had not answered when it last spoke.
      {"GrantsThatCrossAreNoAnswers", kProfile, "W2-4.2.1.1-1",
       [](Talk& talk) {
         talk.open();
         talk.say(kClient, talk.call(kClient, kXid));
         tell(talk, kServer, wg07::kConnpropFinal, {});
         talk.say(kClient, talk.message(kClient, wg07::kGrant));
         say_with_credit(talk, kServer, talk.message(kServer, wg07::kGrant), 35);
       },
       [](Talk& talk) {
         talk.open();
         talk.say(kClient, talk.call(kClient, kXid));
         talk.say(kServer, talk.reply(kServer, kXid));
         talk.say(kClient, talk.message(kClient, wg07::kGrant));
         say_with_credit(talk, kServer, talk.message(kServer, wg07::kGrant), 35);
       }},
      {"SendsWithinOnesOwnSize", kProfile, "W2-5.2-1",
       [](Talk& talk) {
         talk.open();
         tell(talk, kServer, wg07::kConnpropFinal, {{wg07::kRbsiz, word(8192)}});
         tell(talk, kClient, wg07::kConnpropFinal, {{wg07::kSbsiz, word(8192)}});
         talk.say(kClient, talk.call(kClient, kXid, 8000));
       },
       [](Talk& talk) {
         talk.open();
         tell(talk, kServer, wg07::kConnpropFinal, {{wg07::kRbsiz, word(8192)}});
         talk.say(kClient, talk.call(kClient, kXid, 8000));
       }},
      {"PropertiesFitTheDefaultThreshold", kProfile, "W2-6.3.4-1",
       [](Talk& talk) {
         talk.open();
         tell(talk, kClient, wg07::kConnpropFinal, {{4711, Bytes(4000)}});
       },
       [](Talk& talk) {
         talk.open();
         tell(talk, kServer, wg07::kConnpropFinal, {{wg07::kRbsiz, word(8192)}});
         tell(talk, kClient, wg07::kConnpropMiddle, {{wg07::kSbsiz, word(8192)}});
         tell(talk, kClient, wg07::kConnpropFinal, {{4711, Bytes(5000)}});
       }},
      {"NothingInterruptsACall", kProfile, "W2-6.3.6-3",
       [](Talk& talk) {
         begin_call(talk);
         end_call(talk);
         tell(talk, kClient, wg07::kConnpropFinal, {});
       },
       [](Talk& talk) {
         begin_call(talk);
         tell(talk, kClient, wg07::kConnpropFinal, {});
         end_call(talk);
       }},
      {"GrantsAndErrorsMayInterrupt", kProfile, "W2-6.3.6-3",
       [](Talk& talk) {
         begin_call(talk);
         talk.say(kClient, talk.message(kClient, wg07::kGrant));
         talk.say(kServer, talk.properties(kServer, wg07::kConnpropFinal, {}));
         talk.say(kClient, talk.error(kClient, 0xcafe0000 + 5, 3));
         end_call(talk);
       },
       [](Talk& talk) {
         begin_call(talk);
         talk.say(kClient, talk.external_call(kClient, kXid + 1, kSink));
         end_call(talk);
       }},
      {"NothingInterruptsAReply", kProfile, "W2-6.3.9-2",
       [](Talk& talk) {
         begin_reply(talk);
         talk.say(kServer, end_of_reply(talk));
         tell(talk, kServer, wg07::kConnpropFinal, {});
       },
       [](Talk& talk) {
         begin_reply(talk);
         tell(talk, kServer, wg07::kConnpropFinal, {});
         talk.say(kServer, end_of_reply(talk));
       }},
      {"PartsHaveOneXid", kProfile, "W2-6.3.6-4",
       [](Talk& talk) {
         begin_call(talk);
         end_call(talk);
         talk.say(kClient, talk.call(kClient, kXid + 1));
       },
       [](Talk& talk) {
         begin_call(talk);
         talk.say(kClient, talk.call(kClient, kXid + 1));
         end_call(talk);
       }},
      {"PartsTellWhatIsLeft", kProfile, "W2-6.3.6-2",
       [](Talk& talk) {
         begin_call(talk);
         end_call(talk);
       },
       [](Talk& talk) {
         talk.open();
         talk.say(kClient, talk.part(kClient, kXid, slice(kCall, 0, 20), 60));
         talk.say(kClient, talk.part(kClient, kXid, slice(kCall, 20, 40), 20));
         end_call(talk);
       }},
      {"PartsMakeAnRpcMessage", kProfile, "W2-7.2-1",
       [](Talk& talk) {
         begin_call(talk);
         end_call(talk);
         talk.say(kServer, talk.reply(kServer, kXid));
       },
       [](Talk& talk) {
         const Bytes other = rpc_call(kXid + 1, 20);
         talk.open();
         talk.say(kClient, talk.part(kClient, kXid, slice(other, 0, 20), 40));
         talk.say(kClient, talk.part(kClient, kXid, slice(other, 20, 40), 20));
         end_call(talk);
         talk.say(kServer, talk.reply(kServer, kXid));
       }},
      {"PartsMakeAnRpcHeader", kProfile, "W2-4.1-5",
       [](Talk& talk) {
         begin_call(talk);
         end_call(talk);
       },
       [](Talk& talk) {
         talk.open();
         talk.say(kClient, talk.part(kClient, kXid, slice(kCall, 0, 12), 20));
         talk.say(kClient, talk.last_part(kClient, kXid, slice(kCall, 12, 32)));
       }},
      {"PartsAreOfTheirDirection", kProfile, "W2-6.1-1",
       [](Talk& talk) {
         begin_call(talk);
         end_call(talk);
       },
       [](Talk& talk) {
         talk.open();
         talk.say(kClient, talk.part(kClient, kXid, slice(kReply, 0, 20), 24));
         talk.say(kClient, talk.last_part(kClient, kXid, slice(kReply, 20, 44)));
       }},
      {"ACallIsWholeBeforeItsReply", kProfile, "W2-3.1.3-1",
       [](Talk& talk) {
         begin_call(talk);
         end_call(talk);
         talk.say(kServer, talk.reply(kServer, kXid));
       },
       [](Talk& talk) {
         begin_call(talk);
         talk.say(kServer, talk.reply(kServer, kXid));
       }},
      {"ARefusedCallHasNoReply", kProfile, "W2-3.1.3-1",
       [](Talk& talk) {
         begin_call(talk);
         talk.say(kServer, talk.error(kServer, kXid, 5));
         end_call(talk);
       },
       [](Talk& talk) {
         begin_call(talk);
         talk.say(kServer, talk.error(kServer, kXid, 5));
         end_call(talk);
         talk.say(kServer, talk.reply(kServer, kXid));
       }},
      {"OnlyTheLastPartInvalidates", kProfile, "W2-6.5-3",
       [](Talk& talk) {
         talk.open();
         Message call = call_with_sink(talk, {kSink});
         call.inv_handle = kSink.handle;
         talk.say(kClient, call);
         talk.say(kServer, talk.reply_part(kServer, kXid, slice(kReply, 0, 20), 24));
         talk.say(kServer, end_of_reply(talk), kSink.handle);
       },
       [](Talk& talk) {
         talk.open();
         Message call = call_with_sink(talk, {kSink});
         call.inv_handle = kSink.handle;
         talk.say(kClient, call);
         talk.say(kServer, talk.reply_part(kServer, kXid, slice(kReply, 0, 20), 24), kSink.handle);
         talk.say(kServer, end_of_reply(talk));
       }},
      {"NothingInterruptsProperties", kProfile, "W2-6.3.3-3",
       [](Talk& talk) {
         talk.open();
         tell(talk, kClient, wg07::kConnpropMiddle, {});
         talk.say(kClient, talk.message(kClient, wg07::kGrant));
         tell(talk, kClient, wg07::kConnpropMiddle, {});
         tell(talk, kClient, wg07::kConnpropFinal, {});
         call_times(talk, 1);
       },
       [](Talk& talk) {
         talk.open();
         tell(talk, kClient, wg07::kConnpropMiddle, {});
         call_times(talk, 1);
         tell(talk, kClient, wg07::kConnpropFinal, {});
       }},
      {"NoPropertiesFollowTheLast", kProfile, "W2-6.3.4-2",
       [](Talk& talk) {
         talk.open();
         tell(talk, kClient, wg07::kConnpropFinal, {});
         tell(talk, kServer, wg07::kConnpropFinal, {});
       },
       [](Talk& talk) {
         talk.open();
         tell(talk, kClient, wg07::kConnpropFinal, {});
         tell(talk, kClient, wg07::kConnpropFinal, {});
       }},
      {"SegmentsOfDefaultLength", kProfile, "W2-5.2-3",
       [](Talk& talk) {
         talk.open();
         talk.say(kClient, call_with_sink(talk, {{1, 1048576, 0}}));
       },
       [](Talk& talk) {
         talk.open();
         talk.say(kClient, call_with_sink(talk, {{1, 1048577, 0}}));
       }},
      {"SegmentsOfTheLengthThatWasTold", kProfile, "W2-5.2-3",
       [](Talk& talk) {
         open_with_property(talk, wg07::kRssiz, 4096);
         talk.say(kClient, call_with_sink(talk, {kSink}));
       },
       [](Talk& talk) {
         open_with_property(talk, wg07::kRssiz, 4095);
         talk.say(kClient, call_with_sink(talk, {kSink}));
       }},
      {"SegmentsOfTheDefaultNumber", kProfile, "W2-5.2-4",
       [](Talk& talk) {
         talk.open();
         talk.say(kClient, call_with_sink(talk, Chunk(16, kSink)));
       },
       [](Talk& talk) {
         talk.open();
         Message call = call_with_sink(talk, Chunk(16, kSink));
         call.reply = {kSink};
         talk.say(kClient, call);
       }},
      {"SegmentsOfTheNumberThatWasTold", kProfile, "W2-5.2-4",
       [](Talk& talk) {
         open_with_property(talk, wg07::kRcsiz, 2);
         talk.say(kClient, call_with_sink(talk, Chunk(2, kSink)));
       },
       [](Talk& talk) {
         open_with_property(talk, wg07::kRcsiz, 1);
         talk.say(kClient, call_with_sink(talk, Chunk(2, kSink)));
       }},
      // The message of the client may not have reached the server when it sent this.
      {"ALimitTakesTimeToBeHeardOf", kProfile, "W2-5.2-4",
       [](Talk& talk) {
         talk.open();
         tell(talk, kServer, wg07::kConnpropFinal, {{wg07::kRcsiz, word(1)}});
         talk.say(kClient, call_with_sink(talk, Chunk(2, kSink)));
       },
       [](Talk& talk) {
         open_with_property(talk, wg07::kRcsiz, 1);
         talk.say(kClient, call_with_sink(talk, Chunk(2, kSink)));
       }},
      {"ReverseCallsInOnePiece", kProfile, "W2-5.2.5-2",
       [](Talk& talk) {
         talk.open();
         tell(talk, kClient, wg07::kConnpropFinal, {{wg07::kBrs, word(2)}});
         talk.say(kServer, talk.part(kServer, kXid, slice(kCall, 0, 40), 20));
         talk.say(kServer, talk.last_part(kServer, kXid, slice(kCall, 40, 60)));
       },
       [](Talk& talk) {
         talk.open();
         tell(talk, kClient, wg07::kConnpropFinal, {{wg07::kBrs, word(1)}});
         talk.say(kServer, talk.part(kServer, kXid, slice(kCall, 0, 40), 20));
         talk.say(kServer, talk.last_part(kServer, kXid, slice(kCall, 40, 60)));
       }},
  };
}

}  // namespace weft::wire_v2
