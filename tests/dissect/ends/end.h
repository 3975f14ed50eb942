#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/dissect/ends/driving.h"
#include "tests/dissect/ends/options.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/verbs.h"

namespace weft::ends {

// End is one end of one connection: it connects or accepts, takes its steps, and stays until the connection is over. A
// client ends it. If the connection ends before, the rest of the steps are left out. Errors are std::runtime_error.
class End {
 public:
  explicit End(const Options& options);
  ~End();
  void run();

 private:
  void register_memory();
  void listen(const sockaddr_storage& addr);
  void connect(const sockaddr_storage& addr);
  void make_qp();
  void take(const Step& step);
  void post(verbs::WrOpcode opcode, const verbs::Sge& sge, const Step& step);
  verbs::Sge text_of(const Step& step);

  void collect();
  void on_event(verbs::CmEvent event);
  // Until done() or the end of the connection.
  template <typename Done>
  void until(Done done) {
    run_until(*device_, [&] {
      collect();
      return over_ || done();
    });
  }

  const Options& options_;
  std::vector<std::uint8_t> receives_, texts_;
  std::size_t texts_len_ = 0;
  // Destroyed from last to first.
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<verbs::Pd> pd_, foreign_pd_;
  std::vector<std::unique_ptr<verbs::Mr>> memory_;
  std::unique_ptr<verbs::Mr> receives_mr_, texts_mr_;
  std::unique_ptr<verbs::Cq> cq_;
  std::unique_ptr<verbs::CmChannel> channel_;
  std::unique_ptr<verbs::CmId> listener_, id_;
  std::unique_ptr<verbs::Qp> qp_;

  verbs::CmEventType reached_ = verbs::CmEventType::kConnectError;  // the last event; none has come yet
  bool over_ = false;
  std::size_t num_received_ = 0, num_awaited_ = 0, num_open_ = 0;
};

}  // namespace weft::ends
