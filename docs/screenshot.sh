#!/usr/bin/env bash
# Makes docs/chat.png, the picture in the README. Needs chromium and chromedriver.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --example chat
SCREENSHOT=$PWD/docs/chat.png BROWSER=required \
    cargo test --test browser -- --exact looks::the_page_is_as_the_readme_shows_it
