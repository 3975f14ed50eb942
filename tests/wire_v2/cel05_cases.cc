// Rules of cel05 alone: credits that count Calls, four property messages, options.

#include "tests/wire_v2/conversation_cases.h"
#include "tests/wire_v2/tables.h"

namespace weft::wire_v2 {
namespace {

Property size(std::uint32_t octets) {
  return {cel05::kRbsiz, word(octets)};
}

// The server's first Reply grants this much.
void open_with_grant(Talk& talk, std::uint32_t grant) {
  talk.say(kClient, talk.call(kClient, 1));
  Message reply = talk.reply(kServer, 1);
  reply.credit = grant;
  talk.say(kServer, reply);
}

void call_times(Talk& talk, std::uint32_t times, std::uint32_t requested = 32) {
  for (std::uint32_t i = 0; i < times; ++i) {
    Message call = talk.call(kClient, kXid + i);
    call.credit = requested;
    talk.say(kClient, call);
  }
}

void tell(Talk& talk, std::uint32_t type, std::vector<Property> properties, std::uint32_t nochg = 0) {
  Message told = talk.properties(kServer, type, std::move(properties));
  if (type == cel05::kConnprop) told.subsets = {{nochg}};
  talk.say(kServer, told);
}

// The client asks the server for buffers of this size.
void ask(Talk& talk, std::uint32_t octets) {
  Message request = talk.properties(kClient, cel05::kReqprop, {size(octets)});
  request.xid = kXid;
  talk.say(kClient, request);
}

Message answer(const Talk& talk, std::uint32_t done, std::uint32_t rejected, std::vector<Property> other = {}) {
  Message response = talk.properties(kServer, cel05::kResprop, std::move(other));
  response.xid = kXid;
  response.subsets = {{done}, {rejected}};
  return response;
}

Message option(const Talk& talk, End from, Direction direction, std::uint32_t xid) {
  Message option = talk.message(from, cel05::kOptional, xid);
  option.direction = direction;
  return option;
}

}  // namespace

std::vector<Case> cel05_cases() {
  constexpr Profile kProfile = Profile::kCel05;
  return {
      {"CallsWithinTheGrant", kProfile, "R2-7.2.2-10",
       [](Talk& talk) {
         open_with_grant(talk, 2);
         call_times(talk, 2);
       },
       [](Talk& talk) {
         open_with_grant(talk, 2);
         call_times(talk, 3);
       }},
      {"CallsWithinTheRequest", kProfile, "R2-7.2.2-10",
       [](Talk& talk) {
         open_with_grant(talk, 32);
         call_times(talk, 2, 2);
       },
       [](Talk& talk) {
         open_with_grant(talk, 32);
         call_times(talk, 3, 2);
       }},
      // The lower grant of the last Reply may not have been heard of; the Reply itself takes a credit back.
      {"ALowerGrantTakesTime", kProfile, "R2-7.2.2-10",
       [](Talk& talk) {
         open_with_grant(talk, 3);
         call_times(talk, 2);
         Message reply = talk.reply(kServer, kXid);
         reply.credit = 1;
         talk.say(kServer, reply);
         talk.say(kClient, talk.call(kClient, 100));
       },
       [](Talk& talk) {
         open_with_grant(talk, 3);
         call_times(talk, 2);
         Message reply = talk.reply(kServer, kXid);
         reply.credit = 1;
         talk.say(kServer, reply);
         talk.say(kClient, talk.call(kClient, 100));
         talk.say(kClient, talk.call(kClient, 101));
       }},
      {"CreditsOfTheDirectionsAreSeparate", kProfile, "R2-7.2.2-10",
       [](Talk& talk) {
         open_with_grant(talk, 2);
         call_times(talk, 2);
         talk.say(kServer, talk.call(kServer, kXid));
       },
       [](Talk& talk) {
         open_with_grant(talk, 2);
         call_times(talk, 2);
         talk.say(kServer, talk.call(kServer, kXid));
         talk.say(kServer, talk.call(kServer, kXid + 1));
       }},
      {"ErrVersGrantsNothing", kProfile, "R2-7.2.2-10",
       [](Talk& talk) {
         talk.say(kClient, talk.call(kClient, kXid));
         talk.say(kServer, talk.error(kServer, kXid, kErrVers));
         call_times(talk, 1);
       },
       [](Talk& talk) {
         talk.say(kClient, talk.call(kClient, kXid));
         talk.say(kServer, talk.error(kServer, kXid, kErrVers));
         tell(talk, cel05::kConnprop, {});
         call_times(talk, 2);
       }},
      {"TheAskingEndKeepsToWhatItAskedFor", kProfile, "R2-6.2.1-7",
       [](Talk& talk) {
         talk.open();
         tell(talk, cel05::kConnprop, {size(16384)});
         ask(talk, 8192);
         talk.say(kServer, answer(talk, 0, 1));
         talk.say(kClient, talk.call(kClient, 1, 10000));
       },
       [](Talk& talk) {
         talk.open();
         tell(talk, cel05::kConnprop, {size(16384)});
         ask(talk, 8192);
         talk.say(kClient, talk.call(kClient, 1, 10000));
       }},
      {"ADoneRequestHolds", kProfile, "R2-3.3-3",
       [](Talk& talk) {
         talk.open();
         tell(talk, cel05::kConnprop, {size(16384)});
         ask(talk, 8192);
         talk.say(kServer, answer(talk, 0, 0, {size(12288)}));
         talk.say(kClient, talk.call(kClient, 1, 10000));
       },
       [](Talk& talk) {
         talk.open();
         tell(talk, cel05::kConnprop, {size(16384)});
         ask(talk, 8192);
         talk.say(kServer, answer(talk, 1, 0));
         talk.say(kClient, talk.call(kClient, 1, 10000));
       }},
      {"UpdatesOfWhatWasTold", kProfile, "R2-6.3.1-6",
       [](Talk& talk) {
         talk.open();
         tell(talk, cel05::kConnprop, {size(8192)});
         tell(talk, cel05::kUpdprop, {size(16384)});
       },
       [](Talk& talk) {
         talk.open();
         tell(talk, cel05::kConnprop, {{cel05::kBrs, word(1)}});
         tell(talk, cel05::kUpdprop, {size(16384)});
       }},
      {"WhatWillNotChangeDoesNot", kProfile, "R2-6.3.1-4",
       [](Talk& talk) {
         talk.open();
         tell(talk, cel05::kConnprop, {{cel05::kBrs, word(1)}, size(8192)}, 1);
         tell(talk, cel05::kUpdprop, {size(16384)});
       },
       [](Talk& talk) {
         talk.open();
         tell(talk, cel05::kConnprop, {{cel05::kBrs, word(1)}, size(8192)}, 2);
         tell(talk, cel05::kUpdprop, {size(16384)});
       }},
      {"BuffersDoNotShrinkUnasked", kProfile, "R2-6.2.1-6",
       [](Talk& talk) {
         talk.open();
         tell(talk, cel05::kConnprop, {size(8192)});
         tell(talk, cel05::kUpdprop, {size(8192)});
       },
       [](Talk& talk) {
         talk.open();
         tell(talk, cel05::kConnprop, {size(8192)});
         tell(talk, cel05::kUpdprop, {size(8191)});
       }},
      {"ResponsesHaveTheirRequest", kProfile, "R2-6.3.3-2",
       [](Talk& talk) {
         talk.open();
         ask(talk, 8192);
         talk.say(kServer, answer(talk, 1, 0));
       },
       [](Talk& talk) {
         talk.open();
         ask(talk, 8192);
         talk.say(kServer, answer(talk, 1, 0));
         talk.say(kServer, answer(talk, 1, 0));
       }},
      {"ResponsesTellOfWhatWasAskedFor", kProfile, "R2-6.3.3-6",
       [](Talk& talk) {
         talk.open();
         ask(talk, 8192);
         talk.say(kServer, answer(talk, 0, 0, {size(6000)}));
       },
       [](Talk& talk) {
         talk.open();
         ask(talk, 8192);
         talk.say(kServer, answer(talk, 1, 0, {{cel05::kBrs, word(1)}}));
       }},
      {"SetsOfAResponseAreApart", kProfile, "R2-6.3.3-8",
       [](Talk& talk) {
         talk.open();
         ask(talk, 8192);
         talk.say(kServer, answer(talk, 0, 1));
       },
       [](Talk& talk) {
         talk.open();
         ask(talk, 8192);
         talk.say(kServer, answer(talk, 1, 1));
       }},
      {"AnErrorAnswersARequestForProperties", kProfile, "R2-6.3.3-2",
       [](Talk& talk) {
         talk.open();
         ask(talk, 8192);
         talk.say(kServer, talk.error(kServer, kXid, 9));
       },
       [](Talk& talk) {
         talk.open();
         ask(talk, 8192);
         talk.say(kServer, talk.error(kServer, kXid, 9));
         talk.say(kServer, answer(talk, 1, 0));
       }},
      {"OptionsAreAnsweredOnce", kProfile, "R2-7.2.2-3",
       [](Talk& talk) {
         talk.open();
         talk.say(kClient, option(talk, kClient, Direction::kCall, kXid));
         talk.say(kServer, option(talk, kServer, Direction::kReply, kXid));
       },
       [](Talk& talk) {
         talk.open();
         talk.say(kClient, option(talk, kClient, Direction::kCall, kXid));
         talk.say(kServer, option(talk, kServer, Direction::kReply, kXid));
         talk.say(kServer, option(talk, kServer, Direction::kReply, kXid));
       }},
  };
}

}  // namespace weft::wire_v2
