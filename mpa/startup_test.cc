#include "mpa/startup.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::mpa {
namespace {

using Octets = std::vector<std::uint8_t>;

StartupFrame request_with(const EnhancedWords& words) {
  StartupFrame frame;
  frame.kind = FrameKind::kRequest;
  frame.c = true;
  frame.s = true;
  frame.rev = 2;
  emit_enhanced_words(words, frame.private_data);
  return frame;
}

StartupFrame reply_with(const EnhancedWords& words) {
  StartupFrame frame = request_with(words);
  frame.kind = FrameKind::kReply;
  return frame;
}

Octets octets_of(const StartupFrame& frame) {
  Octets octets;
  emit_startup_frame(frame, octets);
  return octets;
}

// From octet 16 on: flags, Rev, PD_Length, Private Data.
Octets tail_of(const StartupFrame& frame) {
  Octets octets = octets_of(frame);
  octets.erase(octets.begin(), octets.begin() + 16);
  return octets;
}

template <typename T, typename V>
T get(const V& held) {
  EXPECT_TRUE(std::holds_alternative<T>(held)) << "alternative " << held.index();
  return std::holds_alternative<T>(held) ? std::get<T>(held) : T{};
}

const Octets kUlp = {'u', 'l', 'p', '!'};

TEST(Startup, RequestsAreAsTheRfcsSay) {
  RecordProperty("proves",
                 "MPA-1.2-01 MPA-4.4-05 MPA-7.1.1-11 MPA-7.1.1-13 MPA-7.1.1-15 MPA-7.1.2-01 MPA-7.1.2-02 MPA2-6-06 "
                 "MPA2-6-07 MPA2-6-08 MPA2-9.2-02 MPA2-9.2-12 MPA2-10-03");
  EXPECT_EQ(tail_of(make_request({.ird = 8, .ord = 4}, {})), (Octets{0x50, 2, 0, 4, 0, 8, 0, 4}));
  EXPECT_EQ(tail_of(make_request({.ird = 32, .ord = 16, .rtr_offered = {true, true, true}}, kUlp)),
            (Octets{0x50, 2, 0, 8, 0xc0, 32, 0xc0, 16, 'u', 'l', 'p', '!'}));
  EXPECT_EQ(tail_of(make_request({.revision = 1}, kUlp)), (Octets{0x40, 1, 0, 4, 'u', 'l', 'p', '!'}));
  EXPECT_EQ(tail_of(make_request({.revision = 1, .crc = false}, {})), (Octets{0x00, 1, 0, 0}));
  EXPECT_EQ(make_request({}, Octets(max_private_data(2))).private_data.size(), 512u);
  EXPECT_EQ(make_request({.revision = 1}, Octets(max_private_data(1))).private_data.size(), 512u);
}

TEST(Startup, PlainAcceptOfARevision1Request) {
  RecordProperty("proves", "MPA-7.1.2-08 MPA2-6-09 MPA2-10-02");
  const StartupFrame request = make_request({.revision = 1}, kUlp);
  const auto judged = get<Acceptable>(evaluate_request(request, {}));
  EXPECT_EQ(judged.revision, 1);
  EXPECT_EQ(judged.peer_ird, std::nullopt);
  EXPECT_EQ(judged.peer_ord, std::nullopt);
  const Accepted accepted = make_accept(request, {.ird = 5, .ord = 6}, {});
  EXPECT_EQ(tail_of(accepted.reply), (Octets{0x40, 1, 0, 0}));
  EXPECT_EQ(accepted.agreement.revision, 1);
  EXPECT_EQ(accepted.agreement.ird, 5);
  EXPECT_EQ(accepted.agreement.ord, 6);
}

TEST(Startup, CrcIsOnUnlessBothEndsSayOff) {
  RecordProperty("proves", "MPA-4.4-06 MPA-7.1.1-09 MPA-7.1.1-10 MPA2-6-03");
  for (const bool initiator : {false, true}) {
    for (const bool responder : {false, true}) {
      const StartupOptions ours{.crc = initiator};
      const StartupFrame request = make_request(ours, {});
      EXPECT_EQ(request.c, initiator);
      const Accepted accepted = make_accept(request, {.crc = responder}, {});
      EXPECT_EQ(accepted.reply.c, initiator || responder);
      EXPECT_EQ(accepted.agreement.crc, initiator || responder);
      const auto agreed = get<Agreement>(evaluate_reply(accepted.reply, request, ours));
      EXPECT_EQ(agreed.crc, initiator || responder);
      // A peer that does not repeat our C=1 still gets CRCs.
      StartupFrame bare = accepted.reply;
      bare.c = false;
      EXPECT_EQ(get<Agreement>(evaluate_reply(bare, request, ours)).crc, initiator);
    }
  }
}

TEST(Startup, BothEndsAgreeOverAGridOfIrdAndOrd) {
  RecordProperty("proves",
                 "MPA2-9.1-01 MPA2-9.1-02 MPA2-9.1-03 MPA2-9.1-04 MPA2-9.1-05 MPA2-9.1-06 MPA2-9.1-09 MPA2-9.1-12 "
                 "MPA2-10-01");
  const std::uint16_t values[] = {0, 1, 2, 16, 128, 0x3ffe};
  for (const auto ird : values) {
    for (const auto ord : values) {
      for (const auto limit : {std::uint16_t{0}, std::uint16_t{4}, std::uint16_t{64}}) {
        const StartupOptions ours{.ird = ird, .ord = ord};
        const StartupOptions theirs{.ird = limit, .ord = limit};
        const StartupFrame request = make_request(ours, {});
        const auto judged = get<Acceptable>(evaluate_request(request, theirs));
        EXPECT_EQ(judged.peer_ird, ird);
        EXPECT_EQ(judged.peer_ord, ord);
        const Accepted accepted = make_accept(request, theirs, kUlp);
        const auto agreed = get<Agreement>(evaluate_reply(accepted.reply, request, ours));
        EXPECT_TRUE(accepted.reply.enhanced());
        EXPECT_LE(agreed.ord, accepted.agreement.ird);
        EXPECT_LE(accepted.agreement.ord, agreed.ird);
        EXPECT_LE(accepted.agreement.ird, limit);
        EXPECT_LE(accepted.agreement.ord, limit);
        EXPECT_EQ(agreed.ord, std::min(ord, limit));
        EXPECT_EQ(accepted.agreement.ord, std::min(ird, limit));
        EXPECT_EQ(agreed.peer_ird, accepted.agreement.ird);
        EXPECT_EQ(agreed.peer_ord, accepted.agreement.ord);
      }
    }
  }
}

TEST(Startup, AllOnesLeavesIrdAndOrdToTheUlp) {
  RecordProperty("proves", "MPA2-9.1-16 MPA2-9.1-17 MPA2-9.1-18 MPA2-9.1-19");
  constexpr std::uint16_t kManual = EnhancedWords::kManual;
  const StartupFrame request = request_with({.ird = kManual, .ord = kManual});
  const auto judged = get<Acceptable>(evaluate_request(request, {}));
  EXPECT_EQ(judged.peer_ird, std::nullopt);
  EXPECT_EQ(judged.peer_ord, std::nullopt);
  const Accepted accepted = make_accept(request, {.ird = 7, .ord = 9}, {});
  EXPECT_EQ(tail_of(accepted.reply), (Octets{0x50, 2, 0, 4, 0x3f, 0xff, 0x3f, 0xff}));
  EXPECT_EQ(accepted.agreement.ird, 7);
  EXPECT_EQ(accepted.agreement.ord, 9);

  // One field at a time: the other is still applied.
  const Accepted half = make_accept(request_with({.ird = 3, .ord = kManual}), {.ird = 7, .ord = 9}, {});
  EXPECT_EQ(tail_of(half.reply), (Octets{0x50, 2, 0, 4, 0x3f, 0xff, 0, 3}));
  const StartupOptions ours{.ird = 7, .ord = 9};
  const auto ord_kept =
      get<Agreement>(evaluate_reply(reply_with({.ird = kManual, .ord = 4}), make_request(ours, {}), ours));
  EXPECT_EQ(ord_kept.ord, 9);
  EXPECT_EQ(ord_kept.peer_ord, 4);
  const auto ird_kept =
      get<Agreement>(evaluate_reply(reply_with({.ird = 2, .ord = kManual}), make_request(ours, {}), ours));
  EXPECT_EQ(ird_kept.ord, 2);
  EXPECT_EQ(ird_kept.ird, 7);
}

TEST(Startup, RtrIsAnsweredAndChosen) {
  RecordProperty("proves",
                 "MPA2-9.1-08 MPA2-9.2-01 MPA2-9.2-03 MPA2-9.2-04 MPA2-9.2-05 MPA2-9.2-06 MPA2-9.2-07 MPA2-9.2-08 "
                 "MPA2-9.2-09");
  // All kinds are offered: the responder names the kinds that it understands. The initiator takes the Write.
  const StartupOptions all{.ird = 32, .ord = 16, .rtr_offered = {true, true, true}};
  const StartupFrame request = make_request(all, {});
  const Accepted accepted = make_accept(request, {.ird = 16, .ord = 32}, {});
  EXPECT_EQ(tail_of(accepted.reply), (Octets{0x50, 2, 0, 4, 0xc0, 16, 0xc0, 32}));
  EXPECT_EQ(accepted.agreement.rtr_awaited, (RtrSet{true, true, true}));
  EXPECT_EQ(get<Agreement>(evaluate_reply(accepted.reply, request, all)).rtr, Rtr::kWrite);
  // Only Read offered, and ORD 0: IRD is raised to 1 for it.
  const Accepted read = make_accept(request_with({.a = true, .d = true, .ird = 4}), {.ird = 4, .ord = 4}, {});
  EXPECT_EQ(tail_of(read.reply), (Octets{0x50, 2, 0, 4, 0x80, 1, 0x40, 4}));
  EXPECT_EQ(read.agreement.ird, 1);
  // Only Send offered.
  const StartupFrame by_send = request_with({.a = true, .b = true, .ird = 1, .ord = 1});
  EXPECT_EQ(tail_of(make_accept(by_send, {}, {}).reply), (Octets{0x50, 2, 0, 4, 0xc0, 1, 0, 1}));
  // A responder that understands no offered kind names the kind that it does understand.
  const StartupOptions write_only{.rtr_understood = {false, true, false}};
  EXPECT_EQ(tail_of(make_accept(by_send, write_only, {}).reply), (Octets{0x50, 2, 0, 4, 0x80, 1, 0x80, 1}));
  const StartupOptions read_alone{.rtr_understood = {false, false, true}};
  EXPECT_EQ(tail_of(make_accept(by_send, read_alone, {}).reply), (Octets{0x50, 2, 0, 4, 0x80, 1, 0x40, 1}));
  const StartupOptions send_alone{.rtr_understood = {true, false, false}};
  const StartupFrame by_read = request_with({.a = true, .d = true, .ird = 1, .ord = 1});
  EXPECT_EQ(tail_of(make_accept(by_read, send_alone, {}).reply), (Octets{0x50, 2, 0, 4, 0xc0, 1, 0, 1}));
  // A Reply that names more than was offered.
  const StartupOptions read_only{.rtr_offered = {false, false, true}};
  const auto extra = evaluate_reply(reply_with({.a = true, .c = true, .d = true, .ird = 16, .ord = 16}),
                                    make_request(read_only, {}), read_only);
  EXPECT_EQ(get<Agreement>(extra).rtr, Rtr::kRead);
}

TEST(Startup, AReadRtrNeedsASlotOfThePeersOnly) {
  RecordProperty("proves", "MPA2-9.1-08");
  const StartupOptions ours{.ord = 0, .rtr_offered = {.read = true}};
  const StartupFrame request = make_request(ours, {});
  const Accepted accepted = make_accept(request, {.ird = 4}, {});
  EXPECT_EQ(parse_enhanced_words(accepted.reply)->ird, 1);
  EXPECT_EQ(accepted.agreement.ird, 1);
  EXPECT_EQ(get<Agreement>(evaluate_reply(accepted.reply, request, ours)).rtr, Rtr::kRead);
  const auto no_slot = evaluate_reply(reply_with({.a = true, .d = true}), request, ours);
  EXPECT_EQ(get<Unagreeable>(no_slot).error, Error::kNoMatchingRtr);
}

// An RPC server serves no Read of its clients; Chelsio's RNICs offer nothing but the Read as indication.
TEST(Startup, AReadRtrHasASlotAtAResponderThatServesNoRead) {
  RecordProperty("proves", "MPA2-9.1-08");
  const StartupOptions none{.ird = 0, .ord = 16};
  for (const RtrSet& offered : {RtrSet{.read = true}, RtrSet{.write = true, .read = true}, RtrSet{true, true, true}}) {
    for (const auto ord : {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{32}}) {
      const StartupOptions ours{.ird = 32, .ord = ord, .rtr_offered = offered};
      const StartupFrame request = make_request(ours, {});
      const Accepted accepted = make_accept(request, none, {});
      const auto words = parse_enhanced_words(accepted.reply);
      EXPECT_TRUE(words->d);
      EXPECT_EQ(words->ird, 1);
      EXPECT_EQ(accepted.agreement.ird, 1);
      const auto agreed = get<Agreement>(evaluate_reply(accepted.reply, request, ours));
      EXPECT_EQ(agreed.rtr, offered.write ? Rtr::kWrite : Rtr::kRead);
      EXPECT_EQ(agreed.ord, std::min<std::uint16_t>(ord, 1));
    }
  }
  // Nothing is raised for other indications, nor without one.
  const StartupOptions by_send{.ird = 32, .ord = 8, .rtr_offered = {.send = true}};
  EXPECT_EQ(make_accept(make_request(by_send, {}), none, {}).agreement.ird, 0);
  EXPECT_EQ(make_accept(make_request({.ird = 32, .ord = 8}, {}), none, {}).agreement.ird, 0);
  // The IRD is the ULP's to tell, and the slot is there all the same.
  const Accepted manual =
      make_accept(request_with({.a = true, .d = true, .ird = 4, .ord = EnhancedWords::kManual}), none, {});
  EXPECT_EQ(parse_enhanced_words(manual.reply)->ird, EnhancedWords::kManual);
  EXPECT_EQ(manual.agreement.ird, 1);
  // At revision 1 the Read comes unannounced.
  const Accepted plain = make_accept(make_request({.revision = 1}, {}), none, {});
  EXPECT_EQ(plain.agreement.ird, 1);
  EXPECT_EQ(plain.agreement.ord, 16);
}

TEST(Startup, PeersThatWaitForAnRtrAtRevision1) {
  const StartupOptions ours{.revision = 1, .rtr_unasked = Rtr::kRead};
  const StartupFrame request = make_request(ours, {});
  EXPECT_EQ(get<Agreement>(evaluate_reply(make_accept(request, {}, {}).reply, request, ours)).rtr, Rtr::kRead);
}

TEST(PeerProfiles, AreFoundByName) {
  for (const PeerProfile& profile : peer_profiles()) {
    ASSERT_EQ(find_peer_profile(profile.name), &profile);
    EXPECT_LE(profile.max_pd_length, kMaxPrivateDataLen);
    EXPECT_LT(profile.max_reads, EnhancedWords::kManual);
    EXPECT_EQ(max_private_data(2, profile.max_pd_length) + kEnhancedWordsLen, profile.max_pd_length);
  }
  EXPECT_EQ(peer_profiles().front().name, "auto");
  EXPECT_EQ(find_peer_profile("nobody"), nullptr);
}

// Linux's NFS/RDMA server over siw does not survive another offer (docs/linux-siw-rtr.md).
TEST(PeerProfiles, OfferAWriteOrNothing) {
  for (const PeerProfile& profile : peer_profiles()) {
    const bool needs_a_read = profile.name == "cxgb4";
    EXPECT_EQ(profile.rtr_offered.any() && !profile.rtr_offered.write, needs_a_read) << profile.name;
  }
}

TEST(Startup, FlagsWithoutAAreIgnored) {
  RecordProperty("proves", "MPA2-9.2-12 MPA2-9.2-13");
  const Accepted accepted = make_accept(request_with({.b = true, .c = true, .d = true, .ird = 1, .ord = 1}), {}, {});
  EXPECT_EQ(tail_of(accepted.reply), (Octets{0x50, 2, 0, 4, 0, 1, 0, 1}));
  EXPECT_EQ(accepted.agreement.ird, 1);
}

TEST(Startup, AReplyThatCannotBeLivedWithGetsATerminateCode) {
  RecordProperty("proves", "MPA2-8-02 MPA2-9.1-13 MPA2-9.1-14 MPA2-9.2-10");
  const StartupOptions ours{.ird = 64, .ord = 16, .rtr_offered = {false, true, false}};
  const StartupFrame request = make_request(ours, {});
  const auto no_ird =
      get<Unagreeable>(evaluate_reply(reply_with({.a = true, .c = true, .ird = 16, .ord = 100}), request, ours));
  EXPECT_EQ(no_ird.error, Error::kInsufficientIrd);
  EXPECT_EQ(no_ird.agreement.peer_ird, 16);
  EXPECT_EQ(no_ird.agreement.peer_ord, 100);
  EXPECT_TRUE(no_ird.agreement.crc);
  const auto no_rtr = evaluate_reply(reply_with({.a = true, .ird = 16, .ord = 32}), request, ours);
  EXPECT_EQ(get<Unagreeable>(no_rtr).error, Error::kNoMatchingRtr);
  const auto other_model = evaluate_reply(reply_with({.ird = 16, .ord = 32}), request, ours);
  EXPECT_EQ(get<Unagreeable>(other_model).error, Error::kNoMatchingRtr);
  const auto peer_to_peer =
      evaluate_reply(reply_with({.a = true, .c = true, .ird = 1, .ord = 1}), make_request({}, {}), {});
  EXPECT_EQ(get<Unagreeable>(peer_to_peer).error, Error::kNoMatchingRtr);
}

TEST(Startup, RepliesThatAreImproper) {
  RecordProperty("proves", "MPA-7.1.1-16 MPA-7.1.1-17 MPA-7.1.2-11 MPA-C.2.2-01 MPA2-10-01");
  const StartupFrame request = make_request({}, {});
  StartupFrame unenhanced = reply_with({});
  unenhanced.s = false;
  unenhanced.private_data.clear();
  get<BadFrame>(evaluate_reply(unenhanced, request, {}));
  StartupFrame rev3 = reply_with({});
  rev3.rev = 3;
  get<BadFrame>(evaluate_reply(rev3, request, {}));
  StartupFrame rev0 = reply_with({});
  rev0.rev = 0;
  get<BadFrame>(evaluate_reply(rev0, request, {}));
  rev0.s = false;
  rev0.private_data.clear();
  get<BadFrame>(evaluate_reply(rev0, make_request({.revision = 1}, {}), {.revision = 1}));
  get<BadFrame>(evaluate_reply(reply_with({}), make_request({.revision = 1}, {}), {.revision = 1}));
  // Rev 2 allows S=0; the Reply to it is as bare.
  StartupFrame bare = request;
  bare.s = false;
  bare.private_data.clear();
  get<BadFrame>(evaluate_reply(reply_with({}), bare, {}));
}

TEST(Startup, AnEnhancedFrameWithoutItsFourOctetsIsRefused) {
  RecordProperty("proves", "MPA2-6-11");
  const StartupFrame whole = make_request({}, {});
  for (std::size_t len = 0; len < kEnhancedWordsLen; ++len) {
    StartupFrame request = whole;
    request.private_data.resize(len);
    get<BadFrame>(evaluate_request(request, {}));
    for (const bool rejected : {false, true}) {
      StartupFrame reply = reply_with({});
      reply.r = rejected;
      reply.private_data.resize(len);
      get<BadFrame>(evaluate_reply(reply, whole, {}));
    }
  }
}

TEST(Startup, RejectsMirrorTheRequest) {
  RecordProperty("proves", "MPA-7.1.1-12 MPA-7.1.2-05 MPA-7.1.4-01 MPA2-9.1-14 MPA2-10-01");
  const StartupFrame enhanced = make_request({.ird = 2, .ord = 3}, {});
  const StartupFrame reply = make_reject(enhanced, {.ird = 8, .ord = 8}, kUlp);
  EXPECT_EQ(tail_of(reply), (Octets{0x70, 2, 0, 8, 0, 3, 0, 2, 'u', 'l', 'p', '!'}));
  const auto rejected = get<RejectedReply>(evaluate_reply(reply, enhanced, {.ird = 2, .ord = 3}));
  EXPECT_EQ(rejected.peer_ird, 3);
  EXPECT_EQ(rejected.peer_ord, 2);

  const StartupFrame plain = make_request({.revision = 1}, {});
  EXPECT_EQ(tail_of(make_reject(plain, {}, {})), (Octets{0x60, 1, 0, 0}));
  get<RejectedReply>(evaluate_reply(make_reject(plain, {}, {}), plain, {.revision = 1}));
  // A responder of the old kind says Rev 1: the initiator may try again with that.
  EXPECT_EQ(get<RejectedReply>(evaluate_reply(make_reject(plain, {}, {}), enhanced, {})).revision, 1);
}

TEST(Startup, TheReceiverOfEachDirectionDecidesOnMarkers) {
  RecordProperty("proves", "MPA-7.1.1-06 MPA-C.3-01");
  for (const bool initiator : {false, true}) {
    for (const bool responder : {false, true}) {
      for (const bool permissive : {false, true}) {
        for (const std::uint8_t revision : {std::uint8_t{1}, std::uint8_t{2}}) {
          const StartupOptions ours{.revision = revision, .permissive = permissive, .markers = initiator};
          const StartupOptions theirs{.permissive = permissive, .markers = responder};
          const StartupFrame request = make_request(ours, {});
          EXPECT_EQ(request.m, initiator);
          get<Acceptable>(evaluate_request(request, theirs));
          const Accepted accepted = make_accept(request, theirs, {});
          EXPECT_EQ(accepted.reply.m, responder);
          EXPECT_EQ(accepted.agreement.markers_tx, initiator);
          EXPECT_EQ(accepted.agreement.markers_rx, responder);
          EXPECT_EQ(accepted.agreement.version, 1);
          const auto agreed = get<Agreement>(evaluate_reply(accepted.reply, request, ours));
          EXPECT_EQ(agreed.markers_tx, responder);
          EXPECT_EQ(agreed.markers_rx, initiator);
          EXPECT_EQ(agreed.version, 1);
        }
      }
    }
  }
  // A Terminate for a Reply that cannot be lived with is framed as the Reply asked for.
  StartupFrame reply = reply_with({.ird = 1, .ord = 100});
  reply.m = true;
  EXPECT_TRUE(get<Unagreeable>(evaluate_reply(reply, make_request({}, {}), {})).agreement.markers_tx);
}

// RFC 5044 figure 16: with an RDMAC peer there are Markers both ways and CRCs, against the wish of a permissive end.
TEST(Startup, RdmacPeers) {
  RecordProperty("proves", "MPA-C.1-03 MPA-C.1-04 MPA-C.2.3-01 MPA-C.2.3-02 MPA-C.2.4-01 MPA-C.2.4-02 MPA-C.2.5-01");
  StartupFrame rdmac_request = make_request({.revision = 1, .markers = true}, kUlp);
  rdmac_request.rev = 0;
  StartupFrame rdmac_reply = rdmac_request;
  rdmac_reply.kind = FrameKind::kReply;
  for (const bool markers : {false, true}) {
    for (const bool crc : {false, true}) {
      const StartupOptions ours{.permissive = true, .crc = crc, .markers = markers};
      EXPECT_EQ(get<Acceptable>(evaluate_request(rdmac_request, ours)).revision, 0);
      const Accepted accepted = make_accept(rdmac_request, ours, kUlp);
      EXPECT_EQ(tail_of(accepted.reply), (Octets{0xc0, 0, 0, 4, 'u', 'l', 'p', '!'}));
      const StartupFrame request = make_request(ours, {});
      EXPECT_EQ(request.rev, 1);
      EXPECT_FALSE(request.s);
      const auto agreed = get<Agreement>(evaluate_reply(rdmac_reply, request, ours));
      for (const Agreement& agreement : {accepted.agreement, agreed}) {
        EXPECT_EQ(agreement.revision, 0);
        EXPECT_EQ(agreement.version, 0);
        EXPECT_TRUE(agreement.crc);
        EXPECT_TRUE(agreement.markers_tx);
        EXPECT_TRUE(agreement.markers_rx);
      }
    }
  }
  // An RDMAC end would not say this (MPA-A-19).
  const StartupOptions permissive{.permissive = true};
  for (const bool without_m : {false, true}) {
    StartupFrame request = rdmac_request;
    (without_m ? request.m : request.c) = false;
    get<BadFrame>(evaluate_request(request, permissive));
    StartupFrame reply = rdmac_reply;
    (without_m ? reply.m : reply.c) = false;
    get<BadFrame>(evaluate_reply(reply, make_request(permissive, {}), permissive));
  }
  StartupFrame refusal = rdmac_reply;
  refusal.r = true;
  EXPECT_EQ(get<RejectedReply>(evaluate_reply(refusal, make_request(permissive, {}), permissive)).revision, 0);
}

TEST(Startup, RevisionsThatAreNotServed) {
  RecordProperty("proves", "MPA-7.1.1-16 MPA-7.1.1-17 MPA-C.2.1-01 MPA2-10-04");
  StartupFrame request = make_request({}, {});
  get<BadFrame>(evaluate_request(request, {.revision = 1}));
  request.rev = 3;
  get<BadFrame>(evaluate_request(request, {}));
  request.rev = 255;
  get<BadFrame>(evaluate_request(request, {.revision = 255}));
  StartupFrame rdmac = make_request({.revision = 1}, {});
  rdmac.rev = 0;
  rdmac.m = true;
  const auto refused = get<Refused>(evaluate_request(rdmac, {}));
  EXPECT_EQ(tail_of(refused.reply), (Octets{0x60, 1, 0, 0}));
}

TEST(Startup, AtRevision1TheSBitMeansNothing) {
  RecordProperty("proves", "MPA-7.1.1-14 MPA2-6-04");
  StartupFrame request = make_request({.revision = 1}, {});
  request.s = true;
  request.res = 0x0f;
  request.private_data = {0, 1, 0, 1};
  const auto judged = get<Acceptable>(evaluate_request(request, {}));
  EXPECT_EQ(judged.peer_ird, std::nullopt);
  EXPECT_EQ(tail_of(make_accept(request, {}, {}).reply), (Octets{0x40, 1, 0, 0}));
  EXPECT_EQ(ulp_private_data(request).size(), 4u);
}

}  // namespace
}  // namespace weft::mpa
