#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rdmap/terminate.h"

namespace weft::rdmap {

// Course says what became of a Terminate at this end: it came from the peer, or it is our own, which left or could not.
enum class Course : std::uint8_t { kReceived, kSent, kTooLate, kTooEarly };

// DiagnosisRow is what is known of one registered combination beyond its meaning (TerminateRow). The sentences have
// neither capital nor full stop.
struct DiagnosisRow {
  Layer layer = Layer::kRdma;
  std::uint8_t etype = 0;
  std::int16_t code = 0;         // -1: any
  std::int8_t qn = -1;           // the queue of the refused segment that this row is for; -1: any
  std::string_view requirement;  // ids of the rows of tests/conformance/tables that were broken
  std::string_view cause;        // most likely
  std::string_view if_received;  // what to try at this end where the peer said it
  std::string_view if_sent;      // and where we did
};
std::span<const DiagnosisRow> diagnosis_rows();

// Diagnosis is a Terminate in words for people. Parts that say nothing are empty.
struct Diagnosis {
  std::string what = {};   // which layer, the error: "received a Terminate: DDP: ... (1/2/02)"
  std::string told = {};   // the second reading where the control octets have two (PEER-H-20)
  std::string where = {};  // from the headers that came with it: message, STag and TO or queue and MSN, Read
  std::string_view requirements = {};  // ids, with blanks between
  std::string cause = {};
  std::string advice = {};
};

// diagnose puts a Terminate in words. Where Linux siw certainly wrote it (TerminateMessage::siw), siw's reading counts;
// where the control octets stand alone and mean something in both orders, both are told.
Diagnosis diagnose(const TerminateMessage& message, Course course);

// one_line: "WHAT; TOLD, WHERE [REQUIREMENTS]. Likely cause: CAUSE. Try: ADVICE"; to_lines: the same over several lines
// that begin with what they are about. Neither ends with a newline.
std::string one_line(const Diagnosis& diagnosis);
std::string to_lines(const Diagnosis& diagnosis);
// hints is the end of one_line alone, from "Likely cause" on.
std::string hints(const Diagnosis& diagnosis);

}  // namespace weft::rdmap
