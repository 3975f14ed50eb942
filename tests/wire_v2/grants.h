#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::wire_v2 {

// Grants finds GRANTs that answer GRANTs (wg07), which would never end. A GRANT is an answer to GRANTs under two
// conditions: before its last message its end had heard every other message of the peer, and it gives back no more
// credits than the peer's later GRANTs took.
class Grants {
 public:
  // on_send: this end's message with this credit value; true if it answers a GRANT. By its last message it must
  // have heard of the other end's messages up to the event `received`.
  bool on_send(bool is_grant, std::uint32_t credit, std::size_t received) {
    const bool answers = is_grant && num_heard_ > 0 && last_other_ <= received && credit - credit_ <= num_heard_;
    num_heard_ = 0;
    credit_ = credit;
    return answers;
  }
  // on_post: a message of the other end, which is the event of this number.
  void on_post(bool is_grant, std::size_t event) {
    if (is_grant) {
      ++num_heard_;
    } else {
      last_other_ = event;
    }
  }

 private:
  std::uint32_t num_heard_ = 0;  // GRANTs since this end's last message
  std::size_t last_other_ = 0;   // the last message of the other end that was no GRANT
  std::uint32_t credit_ = 0;     // of this end's last message
};

}  // namespace weft::wire_v2
