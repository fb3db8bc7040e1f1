//! Maps and queues of the few things that one connection has at once: searched one by one, the first without memory of its own.

use std::collections::VecDeque;

use smallvec::SmallVec;

/// A map of few entries, in no order.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct FewMap<K, V>(SmallVec<[(K, V); 1]>);

impl<K, V> Default for FewMap<K, V> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<K: PartialEq, V> FewMap<K, V> {
    /// Adds an entry under a key that is not there.
    pub(crate) fn add(&mut self, key: K, value: V) {
        self.0.push((key, value));
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.iter_mut().find(|(k, _)| k == key).map(|(_, value)| value)
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.0.iter().position(|(k, _)| k == key)?;
        Some(self.0.swap_remove(at).1)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (K, V)> {
        self.0.drain(..)
    }
}

/// A queue that holds one thing most of the time.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct FewQueue<T> {
    /// Before all of the rest.
    first: Option<T>,
    rest: VecDeque<T>,
}

impl<T> Default for FewQueue<T> {
    fn default() -> Self {
        Self { first: None, rest: VecDeque::new() }
    }
}

impl<T> FewQueue<T> {
    pub(crate) fn push_back(&mut self, next: T) {
        if self.first.is_none() && self.rest.is_empty() {
            self.first = Some(next);
        } else {
            self.rest.push_back(next);
        }
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        self.first.take().or_else(|| self.rest.pop_front())
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl<T> Extend<T> for FewQueue<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, all: I) {
        all.into_iter().for_each(|next| self.push_back(next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_queued_comes_out_in_order_however_pushes_and_pops_mix() {
        let mut queue = FewQueue::default();
        let mut out = Vec::new();
        for n in 0..20 {
            queue.push_back(n);
            if n % 3 == 0 {
                out.extend(queue.pop_front());
            }
        }
        out.extend(std::iter::from_fn(|| queue.pop_front()));
        assert_eq!(out, (0..20).collect::<Vec<_>>());
    }
}
