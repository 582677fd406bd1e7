"""Text that must arrive in a translation: finds protected spans and glossary terms, and puts them there."""
