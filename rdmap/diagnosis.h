#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rdmap/terminate.h"

namespace weft::rdmap {

// Course tells what happened to a Terminate at this end: the peer sent it, we sent it, or we could not send it.
enum class Course : std::uint8_t { kReceived, kSent, kTooLate, kTooEarly };

// DiagnosisRow adds causes and advice to the meaning of one registered combination (TerminateRow). Its sentences have
// neither capital letter nor full stop.
struct DiagnosisRow {
  Layer layer = Layer::kRdma;
  std::uint8_t etype = 0;
  std::int16_t code = 0;         // -1: any
  std::int8_t qn = -1;           // the refused segment's queue; -1: any
  std::string_view requirement;  // ids of the violated rows of tests/conformance/tables
  std::string_view cause;        // the most likely one
  std::string_view if_received;  // what to try at this end if the peer sent it
  std::string_view if_sent;      // what to try if we sent it
};
std::span<const DiagnosisRow> diagnosis_rows();

// Diagnosis describes a Terminate in plain words. A part without information is empty.
struct Diagnosis {
  std::string what = {};               // the layer and the error: "received a Terminate: DDP: ... (1/2/02)"
  std::string told = {};               // the second reading, if the control octets have two (PEER-H-20)
  std::string where = {};              // from its headers: message, STag and TO or queue and MSN, Read
  std::string_view requirements = {};  // ids, with blanks between
  std::string cause = {};
  std::string advice = {};
};

// diagnose describes a Terminate in words. If Linux siw certainly wrote it (TerminateMessage::siw), siw's reading
// counts. If the control octets come without headers and are registered in both orders, the Diagnosis gives both
// readings.
Diagnosis diagnose(const TerminateMessage& message, Course course);

// one_line gives "WHAT; TOLD, WHERE [REQUIREMENTS]. Likely cause: CAUSE. Try: ADVICE". to_lines gives the same on
// several lines, each of which begins with its topic. Neither ends with a newline.
std::string one_line(const Diagnosis& diagnosis);
std::string to_lines(const Diagnosis& diagnosis);
// hints gives the end of one_line only, from "Likely cause" on.
std::string hints(const Diagnosis& diagnosis);

}  // namespace weft::rdmap
