// tests/conformance/tables/nfsulb-eligibility.tsv, row by row: the eligible items, the bound of the Reply, and the
// operations that may be sent again. The rows' formulas are evaluated for one Call each, which is made from the schema.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "nfsulb/bindings.h"
#include "nfsulb/programs.h"
#include "nfsulb/testing/formula.h"
#include "nfsulb/testing/octets.h"
#include "nfsulb/testing/sample.h"
#include "nfsulb/walk.h"

namespace weft::nfsulb {
namespace {

using testing::Octets;
using testing::Sample;
using testing::Xdr;

constexpr std::size_t kText = 1024;  // of ReplyLimits, as it is by default
constexpr std::size_t kUnbounded = 65536;

struct Row {
  std::string program, version, number, name, direction, item, size, chunks;
};

std::vector<Row> rows() {
  std::ifstream file("tests/conformance/tables/nfsulb-eligibility.tsv");
  std::vector<Row> rows;
  std::string line;
  std::getline(file, line);  // the header
  while (std::getline(file, line)) {
    std::istringstream columns(line);
    Row row;
    for (std::string* column :
         {&row.program, &row.version, &row.number, &row.name, &row.direction, &row.item, &row.size, &row.chunks}) {
      std::getline(columns, *column, '\t');
    }
    row.name = row.name.substr(0, row.name.find(" ("));
    rows.push_back(row);
  }
  return rows;
}

bool is_operation(const Row& row) {
  return row.number.starts_with("op ");
}

const BoundProgram* program_of(const Row& row) {
  const bool callback = row.program.starts_with("NFS4_CALLBACK");
  const std::uint32_t program =
      callback ? kNfs4CallbackProgram
               : static_cast<std::uint32_t>(std::stoul(row.program.substr(row.program.find(' ') + 1)));
  const std::uint32_t version = callback ? 1 : static_cast<std::uint32_t>(std::stoul(row.version));
  for (const BoundProgram& bound : bound_programs()) {
    if (bound.binding.program == program && bound.binding.version == version) return &bound;
  }
  return nullptr;
}

const Type& operations_type(const Program& program) {
  return *program.procedures[1].arguments->fields.back();
}

const Operation* operation_of(const Program& program, const Row& row) {
  if (!is_operation(row)) return find_operation(program.procedures, static_cast<std::uint32_t>(std::stoul(row.number)));
  return find_operation(operations_type(program).operations,
                        static_cast<std::uint32_t>(std::stoul(row.number.substr(3))));
}

std::uint8_t minor_version_of(const Row& row) {
  if (!is_operation(row) || row.version.starts_with("4.0")) return 0;
  return row.version.starts_with("4.1") ? 1 : 2;
}

Sample sample_call(std::uint8_t minor_version) {
  // Attributes 1, 4 and 77.
  return {.count = 8000, .length = 10, .minor_version = minor_version, .bitmap = {0x12, 0, 0x2000}};
}

// The arguments of a procedure, or of a COMPOUND of one operation.
Octets call_of(const Program& program, const Row& row, const Operation& operation) {
  const Sample sample = sample_call(minor_version_of(row));
  if (!is_operation(row)) return sample_of(*operation.arguments, sample).octets();
  Xdr call;
  for (const Type* field : program.procedures[1].arguments->fields) {
    if (field->kind != Kind::kOperations) call.add(sample_of(*field, sample));
  }
  return call.u32(1).u32(operation.number).add(sample_of(*operation.arguments, sample)).octets();
}

struct Phrase {
  const char* row;
  std::string phrase, value;
};
// Words in some rows, and the sizes that a client assumes here for them.
const std::vector<Phrase>& phrases() {
  static const std::vector<Phrase> list = {
      {"COMPOUND", "sum of the op contributions below", "0"},
      {"CB_COMPOUND", "sum of the op contributions", "0"},
      {"DUMP", "sum over entries", "unbounded"},
      {"EXPORT", "sum over exports", "unbounded"},
      {"EXPORTALL", "sum over exports", "unbounded"},
      {"PATHCONF", "about 40", "40"},
      {"SECINFO", "sum over flavors", "12*(16 + 32)"},
      {"SECINFO_NO_NAME", "sum over flavors", "12*(16 + 32)"},
      {"EXCHANGE_ID", "bitmaps + impl_id strings + SSV handles", "2*12 + 2*text + 16*(4 + 32)"},
      {"COPY_NOTIFY", "sum over source servers", "8*(12 + 2*text)"},
      {"LAYOUTGET", "28 per layout4", "28*16"},
      {"SETCLIENTID", "24, or ", ""},
  };
  return list;
}

std::map<std::string, std::size_t> names_for(const Row& row) {
  const Sample sample = sample_call(0);
  std::map<std::string, std::size_t> names = {{"n", 3},
                                              {"n1", 3},
                                              {"n2", 3},
                                              {"n3", 3},
                                              {"A", 4 + 8 + 4},
                                              {"W", kText},
                                              {"L", kText},
                                              {"text", kText},
                                              {"netid", kText},
                                              {"uaddr", kText},
                                              {"value", kUnbounded},
                                              {"unbounded", kUnbounded},
                                              {"k", 64}};
  for (const char* count : {"count", "maxcount", "gdia_maxcount", "gdla_maxdevices", "loga_maxcount", "lxa_maxcount"}) {
    names[count] = sample.count;
  }
  for (const char* length : {"taglen", "cookie", "digest"}) names[length] = sample.length;
  if (row.name == "TEST_STATEID") names["n"] = sample.count;
  if (row.program.starts_with("MOUNT")) names["n"] = 12;
  if (row.program.starts_with("NFSACL")) names["n"] = names["m"] = 1024;
  return names;
}

// The part of the bound beyond the row, for servers that count less than they send (server_habits.h): every field of
// the results that is no entry, name or address.
std::size_t beyond_count(const Row& row) {
  if (row.name == "GETDEVICEINFO") return 4 + 4 + (4 + 3 * 4);
  if (row.name == "LISTXATTRS") return 8 + 4 + 4;
  if (row.name != "READDIR" && row.name != "READDIRPLUS") return 0;
  if (is_operation(row)) return 8 + 4 + 4;
  return row.version == "3" ? 88 + 8 + 4 + 4 : 0;
}

// The formula before the explanation, as in "RH + 72: status 4, fattr 68".
std::string formula_of(const Row& row, const std::map<std::string, std::string>& earlier) {
  std::string text = row.size;
  for (const char* same : {"as v1 ", "contributes as ", "as "}) {
    if (text.starts_with(same)) {
      text = earlier.at(text.substr(std::string(same).size()));
      break;
    }
  }
  for (const char* start : {"RH + ", "contributes "}) {
    if (text.starts_with(start)) text.erase(0, std::string(start).size());
  }
  for (const Phrase& phrase : phrases()) {
    const std::size_t at = row.name == phrase.row ? text.find(phrase.phrase) : std::string::npos;
    if (at != std::string::npos) text.replace(at, phrase.phrase.size(), phrase.value);
  }
  for (const char* end : {":", ";", ",", " (", " for "}) text = text.substr(0, text.find(end));
  return text;
}

class EligibilityTable : public ::testing::Test {
 protected:
  // each calls check(row, program, operation) for every row.
  template <typename Check>
  void each(Check check) {
    std::size_t num_rows = 0;
    for (const Row& row : rows()) {
      SCOPED_TRACE(row.program + " " + row.version + " " + row.number + " " + row.name);
      const BoundProgram* program = program_of(row);
      ASSERT_NE(program, nullptr);
      const Operation* operation = operation_of(*program->schema, row);
      ASSERT_NE(operation, nullptr);
      check(row, *program, *operation);
      ++num_rows;
    }
    EXPECT_EQ(num_rows, 226u);
  }
};

TEST_F(EligibilityTable, NamesAndVersions) {
  RecordProperty("proves", "U1-5-01");
  std::set<std::pair<const BoundProgram*, const Operation*>> seen;
  each([&seen](const Row& row, const BoundProgram& program, const Operation& operation) {
    EXPECT_EQ(operation.name, row.name);
    EXPECT_EQ(operation.since, minor_version_of(row));
    EXPECT_TRUE(seen.insert({&program, &operation}).second);
  });
  std::size_t num_operations = 0;
  for (const BoundProgram& program : bound_programs()) {
    num_operations += program.schema->procedures.size();
    if (program.binding.program == kNfs4CallbackProgram || program.binding.version == kNfsV4) {
      const bool is_nlm = program.binding.program == kNlmProgram;
      if (!is_nlm) num_operations += operations_type(*program.schema).operations.size();
    }
  }
  EXPECT_EQ(seen.size(), num_operations);
}

// Eligible items below a type. Each is an opaque, within any other type.
std::size_t num_eligible(const Type& type) {
  if (type.kind == Kind::kEligible) {
    EXPECT_TRUE(type.element == nullptr && type.fields.empty() && type.arms.empty());
    return 1;
  }
  std::size_t count = type.element != nullptr ? num_eligible(*type.element) : 0;
  for (const Type* field : type.fields) count += num_eligible(*field);
  for (const Arm& arm : type.arms) count += num_eligible(*arm.type);
  return count;
}

TEST_F(EligibilityTable, FieldsAndNeverUnions) {
  RecordProperty("proves", "R1-4.4.4.3-01 R1-4.4.4.3-02");
  each([](const Row& row, const BoundProgram&, const Operation& operation) {
    EXPECT_EQ(num_eligible(*operation.arguments), row.direction == "arg" ? 1u : 0u);
    EXPECT_EQ(num_eligible(*operation.results), row.direction == "result" ? 1u : 0u);
  });
}

TEST_F(EligibilityTable, Eligibility) {
  RecordProperty("proves",
                 "U1-5.1-02 U1-5.2-02 U1-6.1-01 U1-6.1-02 U1-6.1-03 U1-6.1-04 U1-6.1-05 U1-6.5.1-02 U1-6.5.2-03 "
                 "U1-6.6-01 U1-7-01 R1-8-02");
  each([](const Row& row, const BoundProgram&, const Operation& operation) {
    EXPECT_EQ(operation.arguments->has_eligible, row.direction == "arg");
    EXPECT_EQ(operation.eligible_result, row.direction == "result");
    EXPECT_EQ(row.direction == "none", row.item.starts_with("none"));
  });
}

TEST_F(EligibilityTable, ReplySizes) {
  RecordProperty("proves", "U1-3-01 U1-3-04 U1-4.1-01 U1-5.2-03 U1-5.2-05 R1-8.2-02");
  std::map<std::string, std::string> earlier;
  each([&earlier](const Row& row, const BoundProgram& program, const Operation& operation) {
    if (!row.size.starts_with("as ")) earlier[row.name] = row.size;
    const auto bound = testing::bound_reply(program.binding, is_operation(row) ? 1 : operation.number,
                                            call_of(*program.schema, row, operation));
    ASSERT_EQ(bound.walked, testing::Walked::kWhole);
    std::size_t whole = bound.rest;
    for (const std::size_t item : bound.items) whole += rpcrdma::xdr::round_up(item);
    if (is_operation(row)) whole -= 12 + rpcrdma::xdr::round_up(sample_call(0).length);
    const std::string formula = formula_of(row, earlier);
    EXPECT_EQ(whole, testing::Formula(formula, names_for(row)).value() + beyond_count(row)) << formula;
    EXPECT_EQ(bound.items.size(), row.direction == "result" ? 1u : 0u);
  });
}

TEST_F(EligibilityTable, Retries) {
  RecordProperty("proves", "U1-4.1-01");
  each([](const Row& row, const BoundProgram& program, const Operation& operation) {
    const auto bound = testing::bound_reply(program.binding, is_operation(row) ? 1 : operation.number,
                                            call_of(*program.schema, row, operation));
    const std::string retry = "short Reply chunk retry";
    const bool named = (row.size + row.chunks).find(retry) != std::string::npos;
    EXPECT_EQ(bound.may_retry, named);
  });
}

// RFC 1813 section 4.8 and RFC 1094 appendix A leave it to the procedures; RFC 7530 section 9.1 and RFC 8881 section
// 2.10.6 to the operations. An operation that makes, changes, removes or gives out something must not run twice: its
// second Reply would differ. Every other operation may run twice.
TEST_F(EligibilityTable, WhatMustNotRunTwice) {
  static const std::set<std::string> kOnce = {
      // Of version 2, RFC 1094 section 2.2.
      "NFS 2 SETATTR",
      "NFS 2 WRITE",
      "NFS 2 CREATE",
      "NFS 2 REMOVE",
      "NFS 2 RENAME",
      "NFS 2 LINK",
      "NFS 2 SYMLINK",
      "NFS 2 MKDIR",
      "NFS 2 RMDIR",
      // Of version 3, RFC 1813 section 3.3. COMMIT may: data that is stable stays stable.
      "NFS 3 SETATTR",
      "NFS 3 WRITE",
      "NFS 3 CREATE",
      "NFS 3 MKDIR",
      "NFS 3 SYMLINK",
      "NFS 3 MKNOD",
      "NFS 3 REMOVE",
      "NFS 3 RMDIR",
      "NFS 3 RENAME",
      "NFS 3 LINK",
      // Of version 4.0, RFC 7530 section 16: operations that change files or directories, or state of opens, locks and
      // clients.
      "NFS op CLOSE",
      "NFS op CREATE",
      "NFS op DELEGPURGE",
      "NFS op DELEGRETURN",
      "NFS op LINK",
      "NFS op LOCK",
      "NFS op LOCKU",
      "NFS op OPEN",
      "NFS op OPENATTR",
      "NFS op OPEN_CONFIRM",
      "NFS op OPEN_DOWNGRADE",
      "NFS op REMOVE",
      "NFS op RENAME",
      "NFS op SETATTR",
      "NFS op SETCLIENTID",
      "NFS op SETCLIENTID_CONFIRM",
      "NFS op WRITE",
      "NFS op RELEASE_LOCKOWNER",
      // Of version 4.1, RFC 8881 section 18. SEQUENCE uses up a slot.
      "NFS op BACKCHANNEL_CTL",
      "NFS op BIND_CONN_TO_SESSION",
      "NFS op EXCHANGE_ID",
      "NFS op CREATE_SESSION",
      "NFS op DESTROY_SESSION",
      "NFS op FREE_STATEID",
      "NFS op GET_DIR_DELEGATION",
      "NFS op LAYOUTCOMMIT",
      "NFS op LAYOUTGET",
      "NFS op LAYOUTRETURN",
      "NFS op SEQUENCE",
      "NFS op SET_SSV",
      "NFS op WANT_DELEGATION",
      "NFS op DESTROY_CLIENTID",
      "NFS op RECLAIM_COMPLETE",
      // Of version 4.2, RFC 7862 section 15 and RFC 8276 section 8.4.
      "NFS op ALLOCATE",
      "NFS op COPY",
      "NFS op COPY_NOTIFY",
      "NFS op DEALLOCATE",
      "NFS op LAYOUTERROR",
      "NFS op LAYOUTSTATS",
      "NFS op OFFLOAD_CANCEL",
      "NFS op WRITE_SAME",
      "NFS op CLONE",
      "NFS op SETXATTR",
      "NFS op REMOVEXATTR",
      // Callbacks: all but the question for attributes and the row that is no operation.
      "NFS4_CALLBACK op CB_RECALL",
      "NFS4_CALLBACK op CB_LAYOUTRECALL",
      "NFS4_CALLBACK op CB_NOTIFY",
      "NFS4_CALLBACK op CB_PUSH_DELEG",
      "NFS4_CALLBACK op CB_RECALL_ANY",
      "NFS4_CALLBACK op CB_RECALLABLE_OBJ_AVAIL",
      "NFS4_CALLBACK op CB_RECALL_SLOT",
      "NFS4_CALLBACK op CB_SEQUENCE",
      "NFS4_CALLBACK op CB_WANTS_CANCELLED",
      "NFS4_CALLBACK op CB_NOTIFY_LOCK",
      "NFS4_CALLBACK op CB_NOTIFY_DEVICEID",
      "NFS4_CALLBACK op CB_OFFLOAD",
      // Locks and their notices.
      "NLM 1 LOCK",
      "NLM 1 CANCEL",
      "NLM 1 UNLOCK",
      "NLM 1 GRANTED",
      "NLM 1 LOCK_MSG",
      "NLM 1 CANCEL_MSG",
      "NLM 1 UNLOCK_MSG",
      "NLM 1 GRANTED_MSG",
      "NLM 1 LOCK_RES",
      "NLM 1 CANCEL_RES",
      "NLM 1 UNLOCK_RES",
      "NLM 1 GRANTED_RES",
      "NLM 3 LOCK",
      "NLM 3 CANCEL",
      "NLM 3 UNLOCK",
      "NLM 3 GRANTED",
      "NLM 3 LOCK_MSG",
      "NLM 3 CANCEL_MSG",
      "NLM 3 UNLOCK_MSG",
      "NLM 3 GRANTED_MSG",
      "NLM 3 LOCK_RES",
      "NLM 3 CANCEL_RES",
      "NLM 3 UNLOCK_RES",
      "NLM 3 GRANTED_RES",
      "NLM 3 SHARE",
      "NLM 3 UNSHARE",
      "NLM 3 NM_LOCK",
      "NLM 3 FREE_ALL",
      "NLM 4 LOCK",
      "NLM 4 CANCEL",
      "NLM 4 UNLOCK",
      "NLM 4 GRANTED",
      "NLM 4 LOCK_MSG",
      "NLM 4 CANCEL_MSG",
      "NLM 4 UNLOCK_MSG",
      "NLM 4 GRANTED_MSG",
      "NLM 4 LOCK_RES",
      "NLM 4 CANCEL_RES",
      "NLM 4 UNLOCK_RES",
      "NLM 4 GRANTED_RES",
      "NLM 4 SHARE",
      "NLM 4 UNSHARE",
      "NLM 4 NM_LOCK",
      "NLM 4 FREE_ALL",
      "NSM 1 MON",
      "NSM 1 UNMON",
      "NSM 1 UNMON_ALL",
      "NSM 1 SIMU_CRASH",
      "NSM 1 NOTIFY",
      "NFSACL 2 SETACL",
      "NFSACL 2 GETXATTRDIR",
      "NFSACL 3 SETACL",
      "NFSACL 3 GETXATTRDIR",
  };
  std::set<std::string> once;
  each([&](const Row& row, const BoundProgram& program, const Operation& operation) {
    const std::string name =
        row.program.substr(0, row.program.find(' ')) + " " + (is_operation(row) ? "op" : row.version) + " " + row.name;
    if (!operation.idempotent) once.insert(name);
    // The server's cache of Replies goes by this. An operation is a COMPOUND of its own here. SEQUENCE, which begins a
    // COMPOUND, has its slot to remember it.
    const auto bound = testing::bound_reply(program.binding, is_operation(row) ? 1 : operation.number,
                                            call_of(*program.schema, row, operation));
    EXPECT_EQ(bound.idempotent, operation.idempotent || row.name.ends_with("SEQUENCE"));
  });
  EXPECT_EQ(once, kOnce);
}

// Beyond the table: the results whose length a server makes, by a count that it may not keep or without any limit. A
// session sends nothing twice, so NFSv4.0 alone has operations of this kind.
TEST_F(EligibilityTable, RetriesOnce) {
  static const std::set<std::string> kOnce = {
      "NFS 2 READDIR",    "NFS 3 READLINK",    "NFS 3 READDIR",  "NFS 3 READDIRPLUS",     "MOUNT 1 DUMP",
      "MOUNT 1 EXPORT",   "MOUNT 1 EXPORTALL", "MOUNT 2 DUMP",   "MOUNT 2 EXPORT",        "MOUNT 2 EXPORTALL",
      "MOUNT 3 MNT",      "MOUNT 3 DUMP",      "MOUNT 3 EXPORT", "NFSACL 2 GETACL",       "NFSACL 3 GETACL",
      "NFS 4 READDIR",    "NFS 4 READLINK",    "NFS 4 SECINFO",  "NFS 4 SECINFO_NO_NAME", "NFS 4 GETDEVICEINFO",
      "NFS 4 LISTXATTRS", "NFS 4 READ_PLUS",   "NFS 4 GETXATTR",
  };
  std::set<std::string> once;
  each([&](const Row& row, const BoundProgram& program, const Operation& operation) {
    const auto bound = testing::bound_reply(program.binding, is_operation(row) ? 1 : operation.number,
                                            call_of(*program.schema, row, operation));
    const std::string version = is_operation(row) ? "4" : row.version;
    if (bound.may_retry_once)
      once.insert(row.program.substr(0, row.program.find(' ')) + " " + version + " " + row.name);
  });
  EXPECT_EQ(once, kOnce);
}

}  // namespace
}  // namespace weft::nfsulb
