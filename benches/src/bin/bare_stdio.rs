//! The limit of stdio: read a line, parse it once, write a line.
//! Writes when no further whole line is buffered, so that a window costs one write.

use std::io::{BufRead, BufReader, Write, stdin, stdout};

use twodoor_benches::{Fixed, tools_wanted};

const BUFFER: usize = 64 * 1024;

fn main() -> std::io::Result<()> {
    let fixed = Fixed::new(tools_wanted());
    let mut input = BufReader::with_capacity(BUFFER, stdin().lock());
    let mut output = stdout().lock();
    let (mut line, mut ready) = (Vec::new(), Vec::new());
    while input.read_until(b'\n', &mut line)? != 0 {
        if let Ok(Some(answer)) = fixed.answer(&line) {
            ready.extend_from_slice(&answer.head);
            ready.extend_from_slice(&answer.tail);
            ready.push(b'\n');
        }
        line.clear();
        if ready.len() > BUFFER || !input.buffer().contains(&b'\n') {
            output.write_all(&ready)?;
            output.flush()?;
            ready.clear();
        }
    }
    Ok(())
}
