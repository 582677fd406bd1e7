"""What must arrive in a translation: protected spans, glossary terms, and how they are put there."""
