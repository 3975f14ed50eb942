#include "apps/nfs/command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/common/command.h"
#include "apps/common/option_checks.h"
#include "apps/nfs/runner.h"

namespace weft::apps {
namespace {

constexpr const char* kNamesHelp =
    "Remote names: nfs+rdma://HOST[:PORT]/PATH[?mountport=N], percent-encoded (a blank is %20, a percent sign %25);\n"
    "the default of PORT is 20049, and of N 20048. The command mounts the longest export that is a prefix of\n"
    "PATH, and looks up the rest. If the server lists no such export, it tries to mount PATH, then its parents.\n"
    "`weft serve DIR` exports DIR as /. Symbolic links in PATH are followed as long as they stay in the export.\n"
    "Local names are plain paths.\n";

// Command is one `weft nfs` command under construction.
class Command {
 public:
  Command(CLI::App& nfs, CommandContext& context, const char* name, const char* text, void (*run)(nfs::Runner&),
          const char* example)
      : app_(nfs.add_subcommand(name, text)), options_(std::make_shared<nfs::NfsOptions>()) {
    app_->footer(std::string(kNamesHelp) + "Example:\n  " + example);
    app_->callback([options = options_, &context, run] {
      nfs::Runner runner(context.options, *options);
      run(runner);
      context.exit_status = runner.finish();
    });
    add_timeout_option(
        *app_, options_->timeout,
        "the longest that a request waits for its answer before the command gives up (default 120; of MOUNT 10)");
    flag("--stats", options_->stats, "print how many RDMA Writes, RDMA Reads and Sends it took");
  }

  Command& flag(const char* name, bool& value, const char* text) {
    app_->add_flag(name, value, text);
    return *this;
  }
  Command& json() { return flag("--json", options_->json, "print results as one JSON object per line"); }
  Command& recursive(const char* name = "-r,--recursive") {
    return flag(name, options_->recursive, "directories, with everything in them");
  }
  Command& transfer() {
    app_->add_option("-j,--in-flight", options_->in_flight,
                     "READs or WRITEs of one large file at once (default 8), small files at once (default 128)")
        ->check(CLI::Range(1, 256))
        ->type_name("N");
    app_->add_option("--io-size", options_->limits.io_size,
                     "bytes of one READ or WRITE (default 1 MiB, at most the limit of the server)")
        ->check(CLI::Range(1024u, nfs3::kMaxData))
        ->type_name("BYTES");
    return *this;
  }
  Command& names(const char* name, const char* what, int least, int most) {
    app_->add_option(name, options_->names, what)
        ->required()
        ->expected(least, most)
        ->check(apps::empty_fault)
        ->type_name("...");
    return *this;
  }
  nfs::NfsOptions& options() { return *options_; }

 private:
  CLI::App* app_;
  std::shared_ptr<nfs::NfsOptions> options_;
};

constexpr int kMany = 1 << 20;

void register_show(CLI::App& nfs, CommandContext& context) {
  Command ls(nfs, context, "ls", "List directories.", nfs::run_ls, "weft nfs ls -l nfs+rdma://127.0.0.1/docs");
  ls.json().recursive("-r,-R,--recursive").names("URL", "remote names", 1, kMany);
  ls.flag("-l,--long", ls.options().long_format, "type, mode, links, uid, gid, bytes, time of change (UTC), target");
  ls.flag("-U,--unsorted", ls.options().unsorted, "as the server lists the names, page by page; so does --json");
  ls.flag("-a,--all", ls.options().all, "also names that begin with a dot");
  Command stat(nfs, context, "stat", "Show all attributes of files.", nfs::run_stat,
               "weft nfs stat nfs+rdma://127.0.0.1/docs/README");
  stat.json().names("URL", "remote names", 1, kMany);
  stat.flag("-L,--dereference", stat.options().dereference, "of what a symbolic link points to, not of the link");
  Command cat(nfs, context, "cat", "Write the contents of files to standard output.", nfs::run_cat,
              "weft nfs cat nfs+rdma://127.0.0.1/docs/README");
  cat.transfer().names("URL", "remote names", 1, kMany);
}

void register_copy(CLI::App& nfs, CommandContext& context) {
  Command get(
      nfs, context, "get", "Copy files from a server to here.", nfs::run_get,
      "weft nfs get -r nfs+rdma://server/docs ./copy\n"
      "A file appears under its name only when it is complete; a device or a pipe (/dev/null) is written\n"
      "directly. Without LOCAL the file goes to the current directory; if LOCAL is a directory, into it; if it\n"
      "is -, to standard output. With -r symbolic links are copied as links. Each failure is reported\n"
      "on stderr, the rest is copied, and the exit status is 1.");
  get.json().recursive().transfer().names(
      "URL", "remote names, and last the local one (default: the current directory)", 1, kMany);
  get.flag("-p,--preserve", get.options().preserve, "keep modes and times of files and directories");
  get.flag("--sync", get.options().sync, "write each file to the disk before it gets its name");
  Command put(
      nfs, context, "put", "Copy files from here to a server.", nfs::run_put,
      "weft nfs put report.pdf nfs+rdma://server/incoming/\n"
      "Data is written under a temporary name (.NAME.weft-XXXXXXXX), committed to the server's disk, and only\n"
      "then renamed. If URL is a directory, the file goes into it. LOCAL may be - for standard input. Each failure\n"
      "is reported on stderr, the rest is copied, and the exit status is 1.");
  put.json().recursive().transfer().names("LOCAL", "local names, and last the remote one", 2, kMany);
  put.flag("-p,--preserve", put.options().preserve, "keep modes and times of files and directories");
  put.flag("--sync", put.options().sync, "have each WRITE on the server's disk before its answer (FILE_SYNC)");
}

void register_edit(CLI::App& nfs, CommandContext& context) {
  Command mkdir(nfs, context, "mkdir", "Make directories.", nfs::run_mkdir,
                "weft nfs mkdir -p nfs+rdma://server/incoming/2024/may");
  mkdir.json().names("URL", "remote names", 1, kMany);
  mkdir.flag("-p,--parents", mkdir.options().parents, "also those above; an existing directory is no error");
  Command rm(nfs, context, "rm", "Remove files.", nfs::run_rm, "weft nfs rm -r nfs+rdma://server/incoming/2024");
  rm.json().recursive().names("URL", "remote names", 1, kMany);
  rm.flag("-f,--force", rm.options().force, "ignore missing files");
  Command mv(nfs, context, "mv", "Rename files within an export.", nfs::run_mv,
             "weft nfs mv nfs+rdma://server/a.txt nfs+rdma://server/archive/");
  mv.json().names("URL", "remote names, and last the new name or a directory", 2, kMany);
  Command ln(nfs, context, "ln", "Make a hard link, or with -s a symbolic one.", nfs::run_ln,
             "weft nfs ln -s ../current/report.pdf nfs+rdma://server/links/report.pdf\n"
             "With -s the first name is the text of the link, unchanged. Without -s it is a URL of the same export.");
  ln.json().names("TARGET", "what the link is for, and the name of the link (a URL)", 2, 2);
  ln.flag("-s,--symbolic", ln.options().symbolic, "make a symbolic link");
}

}  // namespace

void register_nfs_command(CLI::App& root, CommandContext& context) {
  CLI::App* nfs = root.add_subcommand("nfs", "NFSv3 client over RPC-over-RDMA.");
  nfs->require_subcommand(1);
  nfs->footer(std::string(kNamesHelp) + "Example:\n  weft nfs ls -l nfs+rdma://127.0.0.1/");
  register_show(*nfs, context);
  register_copy(*nfs, context);
  register_edit(*nfs, context);
}

}  // namespace weft::apps
