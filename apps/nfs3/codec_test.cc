#include "apps/nfs3/codec.h"

#include <gtest/gtest.h>

#include <set>

#include "apps/nfs3/samples_test.h"

namespace weft::nfs3 {
namespace {

using Octets = std::vector<std::uint8_t>;
using testing::dirop;
using testing::fattr;
using testing::full_fh;
using testing::kVerf;
using testing::sattr;
using testing::short_fh;
using testing::wcc;

template <typename T>
Octets emitted(const T& value) {
  Octets out = {0xa5};
  XdrWriter writer(out);
  emit(writer, value);
  EXPECT_EQ(writer.size() % 4, 0u);
  return {out.begin() + 1, out.end()};
}

// check_message: an emitted value parses to an equal value and leaves no octets. No shorter message parses.
template <typename T>
void check_message(const T& value) {
  const Octets octets = emitted(value);
  XdrReader reader(octets);
  T parsed;
  ASSERT_TRUE(parse(reader, parsed));
  EXPECT_TRUE(reader.at_end());
  EXPECT_TRUE(parsed == value);
  for (std::size_t len = 0; len < octets.size(); ++len) {
    XdrReader cut(ConstBytes(octets).first(len));
    T ignored;
    EXPECT_FALSE(parse(cut, ignored)) << "cut at " << len;
  }
}

TEST(Codec, ArgumentsComeBack) {
  check_message(FhArgs{full_fh()});
  check_message(FhArgs{short_fh()});
  check_message(FhArgs{});
  check_message(SetattrArgs{full_fh(), sattr(), Nfstime3{1, 2}});
  check_message(SetattrArgs{full_fh(), {}, std::nullopt});
  check_message(SetattrArgs{short_fh(), {{}, {}, {}, 0, {TimeHow::kSetToServerTime, {}}, {}}, std::nullopt});
  check_message(DiropArgs{dirop()});
  check_message(DiropArgs{dirop("")});
  check_message(AccessArgs{full_fh(), 0x3f});
  check_message(ReadArgs{full_fh(), 1ull << 40, 1 << 20});
  check_message(CreateArgs{dirop(), Createmode3::kUnchecked, sattr(), {}});
  check_message(CreateArgs{dirop(), Createmode3::kGuarded, {}, {}});
  check_message(CreateArgs{dirop(), Createmode3::kExclusive, {}, kVerf});
  check_message(MkdirArgs{dirop(), sattr()});
  for (std::uint32_t type = 1; type <= 7; ++type) {
    const auto ftype = static_cast<Ftype3>(type);
    const bool device = ftype == Ftype3::kBlk || ftype == Ftype3::kChr;
    const bool pipe = ftype == Ftype3::kSock || ftype == Ftype3::kFifo;
    check_message(
        MknodArgs{dirop(), ftype, device || pipe ? sattr() : Sattr3{}, device ? Specdata3{8, 1} : Specdata3{}});
  }
  check_message(RenameArgs{dirop("a"), dirop("bb")});
  check_message(LinkArgs{full_fh(), dirop()});
  check_message(ReaddirArgs{full_fh(), 7, kVerf, 8192});
  check_message(ReaddirplusArgs{full_fh(), 7, kVerf, 512, 8192});
  check_message(CommitArgs{full_fh(), 1, 2});
}

template <typename T>
void check_both_arms(T value) {
  check_message(value);
  T failed;
  failed.status = Nfsstat3::kIo;
  check_message(failed);
  failed.status = static_cast<Nfsstat3>(123456);  // unknown statuses are failures
  check_message(failed);
}

TEST(Codec, ResultsComeBack) {
  check_both_arms(GetattrRes{Nfsstat3::kOk, fattr()});
  check_both_arms(WccRes{Nfsstat3::kOk, wcc()});
  check_message(WccRes{Nfsstat3::kOk, {}});
  check_both_arms(LookupRes{Nfsstat3::kOk, full_fh(), fattr(), fattr()});
  check_message(LookupRes{Nfsstat3::kNoent, {}, {}, fattr()});
  check_both_arms(AccessRes{Nfsstat3::kOk, fattr(), 0x1f});
  check_both_arms(WriteRes{Nfsstat3::kOk, wcc(), 4096, StableHow::kFileSync, kVerf});
  check_both_arms(NewObjectRes{Nfsstat3::kOk, full_fh(), fattr(), wcc()});
  check_message(NewObjectRes{Nfsstat3::kOk, std::nullopt, std::nullopt, {}});
  check_both_arms(RenameRes{Nfsstat3::kOk, wcc(), wcc()});
  check_both_arms(LinkRes{Nfsstat3::kOk, fattr(), wcc()});
  check_both_arms(ReaddirRes{Nfsstat3::kOk, fattr(), kVerf, {{1, ".", 1}, {2, "..", 2}, {3, "file", 3}}, true});
  check_both_arms(ReaddirRes{Nfsstat3::kOk, {}, kVerf, {}, false});
  check_both_arms(ReaddirplusRes{
      Nfsstat3::kOk, fattr(), kVerf, {{1, "x", 1, fattr(), full_fh()}, {2, "y", 2, std::nullopt, std::nullopt}}, true});
  check_both_arms(FsstatRes{Nfsstat3::kOk, fattr(), 1, 2, 3, 4, 5, 6, 7});
  check_both_arms(FsinfoRes{Nfsstat3::kOk, fattr(), 1, 2, 3, 4, 5, 6, 7, 8, {0, 1}, kFsfLink | kFsfSymlink});
  check_both_arms(PathconfRes{Nfsstat3::kOk, fattr(), 32000, 255, true, false, true, false});
  check_both_arms(CommitRes{Nfsstat3::kOk, wcc(), kVerf});
}

TEST(Codec, WriteGolden) {
  const Octets data = {0xd0, 0xd1, 0xd2};
  const WriteArgs args{short_fh(), 0x1'0000'0002, 3, StableHow::kDataSync, {3, data}};
  const Octets head = {0, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 3};
  Octets whole = head;
  whole.insert(whole.end(), {0xd0, 0xd1, 0xd2, 0});
  EXPECT_EQ(emitted(args), whole);

  XdrReader reader(whole);
  WriteArgs parsed;
  ASSERT_TRUE(parse(reader, parsed));
  EXPECT_EQ(Octets(parsed.data.data.begin(), parsed.data.data.end()), data);
  EXPECT_EQ(parsed.data.len, 3u);
  EXPECT_EQ(parsed.offset, 0x1'0000'0002u);

  Octets reduced;
  XdrWriter writer(reduced);
  emit(writer, args, ItemForm::kReduced);
  EXPECT_EQ(reduced, head);
  XdrReader reduced_reader(reduced);
  ASSERT_TRUE(parse(reduced_reader, parsed, ItemForm::kReduced));
  EXPECT_TRUE(reduced_reader.at_end());
  EXPECT_EQ(parsed.data.len, 3u);
  EXPECT_TRUE(parsed.data.data.empty());
}

TEST(Codec, ReadGolden) {
  const Octets data = {9, 8};
  const ReadRes res{Nfsstat3::kOk, std::nullopt, 2, true, {2, data}};
  const Octets whole = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 9, 8, 0, 0};
  EXPECT_EQ(emitted(res), whole);
  XdrReader reader(ConstBytes(whole).first(20));
  ReadRes parsed;
  ASSERT_TRUE(parse(reader, parsed, ItemForm::kReduced));
  EXPECT_EQ(parsed.data.len, 2u);
  EXPECT_TRUE(parsed.eof);
}

TEST(Codec, SymlinkAndReadlinkItems) {
  const char text[] = "../target";
  const ConstBytes data(reinterpret_cast<const std::uint8_t*>(text), 9);
  const SymlinkArgs args{dirop(), sattr(), {9, data}};
  for (const ItemForm form : {ItemForm::kInline, ItemForm::kReduced}) {
    Octets octets;
    XdrWriter writer(octets);
    emit(writer, args, form);
    XdrReader reader(octets);
    SymlinkArgs parsed;
    ASSERT_TRUE(parse(reader, parsed, form));
    EXPECT_TRUE(reader.at_end());
    EXPECT_EQ(parsed.where, args.where);
    EXPECT_EQ(parsed.symlink_attributes, args.symlink_attributes);
    EXPECT_EQ(parsed.symlink_data.len, 9u);
    EXPECT_EQ(parsed.symlink_data.data.size(), form == ItemForm::kInline ? 9u : 0u);
  }
  const ReadlinkRes res{Nfsstat3::kOk, fattr(), {9, data}};
  const Octets octets = emitted(res);
  EXPECT_EQ(octets.size(), 4u + 88 + 4 + 12);
}

TEST(Codec, Limits) {
  Octets fh = {0, 0, 0, 65};
  fh.resize(4 + 68);
  XdrReader fh_reader(fh);
  FhArgs fh_args;
  EXPECT_FALSE(parse(fh_reader, fh_args));

  DiropArgs args{dirop()};
  args.what.name.assign(kMaxName, 'n');
  check_message(args);
  args.what.name += 'n';
  check_message(args);
  ReaddirRes listing;
  listing.entries = {{.fileid = 1, .name = std::string(kMaxName, 'n'), .cookie = 1}};
  for (const bool is_long : {false, true}) {
    if (is_long) listing.entries[0].name += 'n';
    const Octets octets = emitted(listing);
    XdrReader reader(octets);
    ReaddirRes parsed;
    EXPECT_EQ(parse(reader, parsed), !is_long);
  }

  for (const std::uint32_t len : {kMaxData, kMaxData + 1}) {
    Octets reduced;
    XdrWriter writer(reduced);
    emit(writer, WriteArgs{short_fh(), 0, len, StableHow::kUnstable, {len, {}}}, ItemForm::kReduced);
    XdrReader reader(reduced);
    WriteArgs parsed;
    EXPECT_EQ(parse(reader, parsed, ItemForm::kReduced), len == kMaxData);
  }
}

TEST(Codec, EnumerationsAreExact) {
  const auto refused = [](auto value, const Octets& octets) {
    XdrReader reader(octets);
    return !parse(reader, value);
  };
  Octets write = emitted(WriteArgs{short_fh(), 0, 0, StableHow::kFileSync, {}});
  write[27] = 3;  // stable_how
  EXPECT_TRUE(refused(WriteArgs{}, write));
  Octets create = emitted(CreateArgs{{short_fh(), "n"}, Createmode3::kExclusive, {}, kVerf});
  create[23] = 3;  // createmode3
  EXPECT_TRUE(refused(CreateArgs{}, create));
  Octets getattr = emitted(GetattrRes{Nfsstat3::kOk, fattr()});
  for (const std::uint8_t type : {std::uint8_t{0}, std::uint8_t{8}}) {
    getattr[7] = type;
    EXPECT_TRUE(refused(GetattrRes{}, getattr));
  }
  Octets access = emitted(AccessRes{Nfsstat3::kOk, std::nullopt, 0});
  access[7] = 2;  // a bool
  EXPECT_TRUE(refused(AccessRes{}, access));
}

TEST(Codec, EntrySizesAreWhatIsEmitted) {
  for (const bool attributes : {false, true}) {
    ReaddirplusRes res{Nfsstat3::kOk, attributes ? PostOpAttr(fattr()) : std::nullopt, kVerf, {}, true};
    std::size_t len = 4 + readdir_base_len(attributes);
    EXPECT_EQ(emitted(res).size(), len);
    for (const char* name : {"a", "abcd", "abcde"}) {
      res.entries.push_back({1, name, 1, attributes ? PostOpAttr(fattr()) : std::nullopt, short_fh()});
      len += entryplus_len(std::string(name).size(), attributes, 5);
      EXPECT_EQ(emitted(res).size(), len);
    }
    res.entries.push_back({1, "z", 1, std::nullopt, std::nullopt});
    EXPECT_EQ(emitted(res).size(), len + entryplus_len(1, false, std::nullopt));
  }
  ReaddirRes res{Nfsstat3::kOk, std::nullopt, kVerf, {{1, "abc", 1}}, true};
  EXPECT_EQ(emitted(res).size(), 4 + readdir_base_len(false) + entry_len(3));
}

TEST(Codec, EndlessEntryListsEnd) {
  Octets octets;
  XdrWriter writer(octets);
  for (int i = 0; i < 5; ++i) writer.u32(0);  // status, no attributes, verifier, and one word of nothing
  octets.resize(16);
  for (std::size_t i = 0; i <= kMaxEntries; ++i) {
    for (const std::uint32_t word : {1u, 0u, 0u, 0u, 0u, 0u}) writer.u32(word);
  }
  for (int i = 0; i < 2; ++i) writer.u32(0);
  XdrReader reader(octets);
  ReaddirRes res;
  EXPECT_FALSE(parse(reader, res));
}

TEST(Types, StatusesHaveNamesAndTexts) {
  EXPECT_STREQ(nfsstat3_name(Nfsstat3::kStale), "NFS3ERR_STALE");
  EXPECT_STREQ(nfsstat3_text(Nfsstat3::kNoent), "no such file or directory");
  EXPECT_STREQ(nfsstat3_name(static_cast<Nfsstat3>(4711)), "NFS3ERR_?");
}

TEST(Types, TableOfProcedures) {
  std::set<std::string> arguments, results;
  for (std::uint32_t i = 0; i < kNumProcs; ++i) {
    if (proc_info(i)->eligible_argument) arguments.insert(proc_info(i)->name);
    if (proc_info(i)->eligible_result) results.insert(proc_info(i)->name);
  }
  EXPECT_EQ(arguments, (std::set<std::string>{"WRITE", "SYMLINK"}));
  EXPECT_EQ(results, (std::set<std::string>{"READ", "READLINK"}));
  EXPECT_STREQ(proc_info(static_cast<std::uint32_t>(Proc::kCommit))->name, "COMMIT");
  EXPECT_EQ(proc_info(22), nullptr);
}

}  // namespace
}  // namespace weft::nfs3
